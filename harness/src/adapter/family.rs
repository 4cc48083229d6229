//! Ends a child with everything it started: its process group, its descendants, and those that left
//! both but still carry the marker that the bench put into the child's environment.

use rustix::process::{Pid, Signal, kill_process_group};

/// A process that SIGKILL does not remove within this time will not be waited for any longer.
#[cfg(target_os = "linux")]
const KILL_WAIT_MS_MAX: u64 = 5_000;

/// Kills the group of `leader`, which must not have been reaped yet, so that nobody else can have got
/// its number; and whoever else belongs to it. Gone or dying when this returns; where the machine has no
/// `/proc`, the group is all that is found.
pub(super) fn kill(leader: Pid, marker: &str) {
    #[cfg(target_os = "linux")]
    linux::kill(leader, marker);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = marker;
        kill_group(leader);
    }
}

/// An error means that nobody is left in it, or that it is not ours to kill.
fn kill_group(leader: Pid) {
    let _ = kill_process_group(leader, Signal::KILL);
}

#[cfg(target_os = "linux")]
mod linux {
    use super::KILL_WAIT_MS_MAX;
    use rustix::process::{Pid, Signal, kill_process};
    use std::collections::BTreeMap;
    use std::fs;
    use std::time::{Duration, Instant};

    /// The longest pause between two looks at who is left.
    const PAUSE_MAX: Duration = Duration::from_millis(20);

    /// How often nobody must be found in a row: in the middle of an exec a process shows no environment.
    const CLEAN_LOOKS: u32 = 2;

    /// One row of `/proc`.
    struct Row {
        parent: i32,
        group: i32,
        /// With the id it names one process for as long as the machine is up.
        started: u64,
        is_dead: bool,
    }

    pub(super) fn kill(leader: Pid, marker: &str) {
        let deadline = Instant::now() + Duration::from_millis(KILL_WAIT_MS_MAX);
        let mut pause = Duration::from_millis(1);
        // Taken before the first kill: afterwards orphans have another parent.
        let mut known = BTreeMap::new();
        let mut clean_looks = 0;
        loop {
            let left = family(leader.as_raw_nonzero().get(), marker, &mut known);
            super::kill_group(leader);
            for pid in &left {
                if let Some(pid) = Pid::from_raw(*pid) {
                    // An error means that it is gone by now, or not ours to kill.
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            clean_looks = if left.is_empty() { clean_looks + 1 } else { 0 };
            if clean_looks == CLEAN_LOOKS || Instant::now() >= deadline {
                return;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Who of the leader's family is alive; `known` remembers it from one look to the next.
    fn family(leader: i32, marker: &str, known: &mut BTreeMap<i32, u64>) -> Vec<i32> {
        let table = table();
        known.retain(|pid, started| table.get(pid).is_some_and(|row| row.started == *started));
        if let Some(row) = table.get(&leader) {
            known.insert(leader, row.started);
        }
        for pid in marked(marker) {
            if let Some(row) = table.get(&pid) {
                known.insert(pid, row.started);
            }
        }
        // Until nobody is added: a child's number may be below its parent's.
        loop {
            let before = known.len();
            for (pid, row) in &table {
                if known.contains_key(&row.parent) || row.group == leader {
                    known.insert(*pid, row.started);
                }
            }
            if known.len() == before {
                break;
            }
        }
        let alive = |pid: &&i32| table.get(pid).is_some_and(|row| !row.is_dead);
        known.keys().filter(alive).copied().collect()
    }

    fn marked(marker: &str) -> Vec<i32> {
        let found = |pid: &i32| {
            fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
                environ.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
            })
        };
        pids().filter(found).collect()
    }

    fn table() -> BTreeMap<i32, Row> {
        pids().filter_map(|pid| row(pid).map(|row| (pid, row))).collect()
    }

    fn pids() -> impl Iterator<Item = i32> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    /// Reads `/proc/PID/stat`; the name in parentheses may hold anything, so it starts after the last `)`.
    fn row(pid: i32) -> Option<Row> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        let is_dead = matches!(fields.next()?, "Z" | "X");
        let parent = fields.next()?.parse().ok()?;
        let group = fields.next()?.parse().ok()?;
        // The 22nd field of the line, of which six have been taken, counting id and name.
        let started = fields.nth(16)?.parse().ok()?;
        Some(Row { parent, group, started, is_dead })
    }
}
