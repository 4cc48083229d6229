//! One child process: pipes that never block the bench, its last words, and an end that leaves nobody.

use super::family;
use super::frame::Lines;
use super::launch::{Launch, StartError};
use super::space::token;
use super::tail::Tail;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use storeproof_contract::call::{Fault, FaultKind};

/// The most bytes taken from a pipe at once.
const READ_BYTES_MAX: usize = 64 * 1024;
/// The most bytes taken from each pipe after the end: more than any pipe holds.
const LEFTOVER_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How long a child that closed its stdout may take to exit before it is killed.
const EXIT_AFTER_EOF: Duration = Duration::from_millis(1_000);
/// How long the machine may take to hand over the exit status of a killed child.
const REAP_WAIT: Duration = Duration::from_millis(5_000);
/// The pause between two looks at whether a child has exited.
const EXIT_PAUSE: Duration = Duration::from_millis(2);

/// A running child. Dropping it kills it, with everything it started.
#[derive(Debug)]
pub struct Child {
    inner: std::process::Child,
    pid: Pid,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    is_stdin_broken: bool,
    last_words: Tail,
    scratch: Vec<u8>,
    marker: String,
    folder: PathBuf,
    end: Option<End>,
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// In words for a person: `it exited with status 3`.
    pub how: String,
    /// Whether it was the bench that ended it.
    pub was_killed: bool,
}

/// What one [`Child::turn`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Something was read or written.
    Moved,
    /// Nothing could be done within the time.
    Idle,
    /// The child's stdout has ended.
    Ended,
}

impl Child {
    /// Starts a child in its own process group, with its own TMPDIR, in the folder the bench runs in.
    ///
    /// # Errors
    /// [`StartError::NotStartable`] where the machine cannot run the program, a handshake fault where it
    /// is the bench that could not prepare the start.
    #[expect(clippy::disallowed_methods, reason = "this is where processes are started")]
    pub fn spawn(launch: &Launch) -> Result<Self, StartError> {
        let folder = launch.space.child_folder().map_err(|error| broken("TMPDIR", &error))?;
        let marker_name = format!("STOREPROOF_CHILD_{}", token());
        let mut inner = Command::new(&launch.program)
            .args(&launch.args)
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .envs([("TMPDIR", &folder), ("TMP", &folder), ("TEMP", &folder)])
            .env(&marker_name, "1")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| StartError::NotStartable {
                command: launch.command_line(),
                why: error.to_string(),
            })?;
        let pid = Pid::from_child(&inner);
        let (stdin, stdout, stderr) =
            (inner.stdin.take(), inner.stdout.take(), inner.stderr.take());
        // From here on `Drop` kills it, whatever fails.
        let child = Self {
            inner,
            pid,
            stdin,
            stdout,
            stderr,
            is_stdin_broken: false,
            last_words: Tail::default(),
            scratch: Vec::with_capacity(READ_BYTES_MAX),
            marker: format!("{marker_name}=1"),
            folder,
            end: None,
        };
        child.unblock().map_err(|error| broken("non-blocking pipes", &error))?;
        Ok(child)
    }

    fn unblock(&self) -> io::Result<()> {
        // The flag belongs to the bench's ends alone; the child's ends block as it expects.
        for fd in [
            self.stdin.as_ref().map(AsFd::as_fd),
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
        ] {
            ioctl_fionbio(fd.ok_or_else(|| io::Error::other("a pipe is missing"))?, true)?;
        }
        Ok(())
    }

    /// The operating system's id of the child.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.inner.id()
    }

    /// Its own TMPDIR, which outlives it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The entry of its environment, `NAME=VALUE`, that all its descendants inherit.
    #[must_use]
    pub fn marker(&self) -> &str {
        &self.marker
    }

    /// Whether its stdin is closed while there was still something to write.
    #[must_use]
    pub fn is_stdin_broken(&self) -> bool {
        self.is_stdin_broken
    }

    /// The last `most` bytes of its stderr, with a word about what was cut.
    #[must_use]
    pub fn last_words(&self, most: usize) -> String {
        self.last_words.told(most)
    }

    /// Writes as much of `bytes` as the pipe takes now; answers how much that was.
    ///
    /// # Errors
    /// The machine's. That the child closed its stdin is none: nothing more is written, and
    /// [`Child::is_stdin_broken`] says so.
    pub fn write_some(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(stdin) = &self.stdin else { return Ok(0) };
        loop {
            match write(stdin, bytes) {
                Ok(count) => return Ok(count),
                Err(Errno::AGAIN) => return Ok(0),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE) => {
                    self.is_stdin_broken = true;
                    self.stdin = None;
                    return Ok(0);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits up to `time` until a pipe is ready, then writes from `pending`, takes what there is on stdout
    /// into `lines` and what there is on stderr into the last words. Moves `written` on.
    ///
    /// # Errors
    /// The machine's.
    pub fn turn(
        &mut self,
        pending: &[u8],
        written: &mut usize,
        lines: &mut Lines,
        time: Duration,
    ) -> io::Result<Turn> {
        let Some(stdout) = &self.stdout else { return Ok(Turn::Ended) };
        let wants_write = *written < pending.len();
        let mut fds = [(); 3].map(|()| PollFd::new(stdout, PollFlags::IN));
        let mut count = 1;
        if let Some(stderr) = &self.stderr {
            fds[count] = PollFd::new(stderr, PollFlags::IN);
            count += 1;
        }
        if let Some(stdin) = self.stdin.as_ref().filter(|_| wants_write) {
            fds[count] = PollFd::new(stdin, PollFlags::OUT);
            count += 1;
        }
        if wait(&mut fds[..count], time)? == 0 {
            return Ok(Turn::Idle);
        }
        let out = !fds[0].revents().is_empty();
        let err = self.stderr.is_some() && !fds[1].revents().is_empty();
        if wants_write {
            *written += self.write_some(&pending[*written..])?;
        }
        if err {
            self.take_stderr()?;
        }
        Ok(if out && self.take_stdout(lines)? == Taken::End { Turn::Ended } else { Turn::Moved })
    }

    /// Lets up to `time` pass while stderr is drained, so that a child that logs does not block.
    pub fn idle(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let Some(stderr) = &self.stderr else { return std::thread::sleep(left) };
            let mut fds = [PollFd::new(stderr, PollFlags::IN)];
            // What cannot be read is not worth failing a wait for; the next call will say so.
            match wait(&mut fds, left) {
                Ok(0) | Err(_) => {}
                Ok(_) if self.take_stderr().is_err() => self.stderr = None,
                Ok(_) => {}
            }
        }
    }

    /// Takes what is on stdout now.
    ///
    /// # Errors
    /// The machine's.
    pub fn take_stdout(&mut self, lines: &mut Lines) -> io::Result<Taken> {
        let Some(stdout) = &self.stdout else { return Ok(Taken::End) };
        let taken = take(stdout, lines.room(READ_BYTES_MAX))?;
        if taken == Taken::End {
            self.stdout = None;
        }
        Ok(taken)
    }

    fn take_stderr(&mut self) -> io::Result<Taken> {
        let Some(stderr) = &self.stderr else { return Ok(Taken::End) };
        self.scratch.clear();
        let taken = take(stderr, &mut self.scratch)?;
        self.last_words.push(&self.scratch);
        if taken == Taken::End {
            self.stderr = None;
        }
        Ok(taken)
    }

    /// Whether the child has exited by itself; it stays a zombie, so that its group keeps its number.
    #[must_use]
    pub fn has_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.end.is_some() || !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None))
    }

    /// Waits up to `time` for the child to exit by itself, draining stderr; answers whether it has.
    pub fn wait_for_exit(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        while !self.has_exited() {
            if Instant::now() >= until {
                return false;
            }
            self.idle(EXIT_PAUSE);
        }
        true
    }

    /// Closes the child's stdin: nothing more will be asked.
    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Kills the child's process group at this very moment; [`Child::end`] does the rest.
    pub fn strike(&self) {
        if !self.has_exited() {
            // An error means that nobody is left in it.
            let _ = kill_process_group(self.pid, Signal::KILL);
        }
    }

    /// Ends the child and everything it started, takes what is left in the pipes, and answers how the
    /// child ended. Ending it again changes nothing.
    pub fn end(&mut self, lines: &mut Lines) -> End {
        if let Some(end) = &self.end {
            return end.clone();
        }
        if self.stdout.is_none() {
            self.wait_for_exit(EXIT_AFTER_EOF);
        }
        let was_killed = !self.has_exited();
        self.stdin = None;
        family::kill(self.pid, &self.marker);
        self.take_leftovers(lines);
        let end = ending(self.reap(), was_killed);
        self.end = Some(end.clone());
        end
    }

    /// With the whole family dead nobody writes any more; bounded all the same.
    fn take_leftovers(&mut self, lines: &mut Lines) {
        let rounds = LEFTOVER_BYTES_MAX / READ_BYTES_MAX;
        for _ in 0..rounds {
            if !matches!(self.take_stdout(lines), Ok(Taken::Some)) {
                break;
            }
        }
        for _ in 0..rounds {
            if !matches!(self.take_stderr(), Ok(Taken::Some)) {
                break;
            }
        }
        (self.stdout, self.stderr) = (None, None);
    }

    fn reap(&mut self) -> Option<ExitStatus> {
        let until = Instant::now() + REAP_WAIT;
        loop {
            match self.inner.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < until => std::thread::sleep(EXIT_PAUSE),
                Ok(None) | Err(_) => return None,
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Whatever is still in the pipes is for nobody.
        self.stdout = None;
        if self.end.is_none() {
            family::kill(self.pid, &self.marker);
            self.reap();
        }
    }
}

/// What a read came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Some bytes.
    Some,
    /// Nothing is there now.
    Nothing,
    /// The other end is closed.
    End,
}

fn take(from: impl AsFd, into: &mut Vec<u8>) -> io::Result<Taken> {
    loop {
        match read(&from, rustix::buffer::spare_capacity(into)) {
            Ok(0) => return Ok(Taken::End),
            Ok(_) => return Ok(Taken::Some),
            Err(Errno::AGAIN) => return Ok(Taken::Nothing),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn wait(fds: &mut [PollFd<'_>], time: Duration) -> io::Result<usize> {
    let time = Timespec::try_from(time).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
    match poll(fds, Some(&time)) {
        Ok(count) => Ok(count),
        // A signal: as good as nothing within the time.
        Err(Errno::INTR) => Ok(0),
        Err(error) => Err(error.into()),
    }
}

fn broken(what: &str, error: &io::Error) -> StartError {
    let message = format!("the bench could not make the child's {what}: {error}");
    StartError::Handshake(Fault::new(FaultKind::Bench, message))
}

fn ending(status: Option<ExitStatus>, was_killed: bool) -> End {
    let how = match (status.and_then(|s| s.code()), status.and_then(|s| s.signal())) {
        _ if was_killed => "it was killed".to_owned(),
        (Some(code), _) => format!("it exited with status {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}{}", signal_name(signal)),
        (None, None) => "it exited, with a status that the machine did not tell".to_owned(),
    };
    End { how, was_killed }
}

/// The signals that end programs in practice; POSIX fixes only some numbers, these are Linux's.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        5 => " (SIGTRAP)",
        6 => " (SIGABRT)",
        7 if cfg!(target_os = "linux") => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        14 => " (SIGALRM)",
        15 => " (SIGTERM)",
        24 => " (SIGXCPU)",
        25 => " (SIGXFSZ)",
        31 if cfg!(target_os = "linux") => " (SIGSYS)",
        _ => "",
    }
}
