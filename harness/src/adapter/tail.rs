//! The last bytes of a stream that is read for ever and kept in bounded memory.

/// How much of a child's stderr is kept for reports.
pub const STDERR_KEPT_BYTES: usize = 64 * 1024;

/// Keeps the last [`STDERR_KEPT_BYTES`] of what is pushed.
#[derive(Debug, Default)]
pub struct Tail {
    kept: Vec<u8>,
    total_bytes: u64,
}

impl Tail {
    /// Takes what came next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total_bytes += bytes.len() as u64;
        let last = &bytes[bytes.len().saturating_sub(STDERR_KEPT_BYTES)..];
        // Trimmed only once it has doubled, so that a flood costs one move a kept byte.
        if self.kept.len() + last.len() > 2 * STDERR_KEPT_BYTES {
            let keep = STDERR_KEPT_BYTES.saturating_sub(last.len());
            let cut = self.kept.len().saturating_sub(keep);
            self.kept.drain(..cut);
        }
        self.kept.extend_from_slice(last);
    }

    /// The last `most` bytes as text and a sentence about what was cut; empty where nothing came.
    pub fn told(&self, most: usize) -> String {
        if self.total_bytes == 0 {
            return "nothing on stderr".to_owned();
        }
        let most = most.min(STDERR_KEPT_BYTES);
        let last = &self.kept[self.kept.len().saturating_sub(most)..];
        let text = String::from_utf8_lossy(last);
        let text = text.trim_end();
        let (shown, total) = (last.len() as u64, self.total_bytes);
        if shown == total {
            format!("stderr: {text}")
        } else {
            let cut = total - shown;
            format!("stderr (the last {shown} of {total} bytes, {cut} cut): {text}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_end_in_bounded_memory_whatever_the_pieces() {
        for piece in [1, 7, 4096, STDERR_KEPT_BYTES, 3 * STDERR_KEPT_BYTES + 1] {
            let all: Vec<u8> = (0..400_000_u32).map(|n| b'a' + (n % 23) as u8).collect();
            let mut tail = Tail::default();
            for bytes in all.chunks(piece) {
                tail.push(bytes);
                assert!(tail.kept.len() <= 2 * STDERR_KEPT_BYTES);
            }
            let end = String::from_utf8_lossy(&all[all.len() - STDERR_KEPT_BYTES..]).into_owned();
            let told = tail.told(usize::MAX);
            assert!(told.ends_with(&end), "{piece}");
            assert!(told.contains("the last 65536 of 400000 bytes, 334464 cut"), "{piece}");
        }
    }

    #[test]
    fn short_and_broken_text_is_told_whole() {
        let mut tail = Tail::default();
        assert_eq!(tail.told(10), "nothing on stderr");
        tail.push(b"err\xff\xe6\n");
        assert_eq!(tail.told(10), "stderr: err\u{fffd}\u{fffd}");
    }
}
