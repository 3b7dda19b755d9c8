//! Limits how much memory all uploads of a store use for write buffers.
//!
//! An upload that gets no more room writes what it has at once, in smaller pieces. So many slow clients cost speed, not memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Buffer bytes of all uploads of a store.
const MOST: usize = 32 << 20;

/// The buffer budget of a store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct BufferBudget {
    most: usize,
    used: Arc<AtomicUsize>,
}

impl Default for BufferBudget {
    fn default() -> Self {
        Self::of(MOST)
    }
}

impl BufferBudget {
    pub fn of(most: usize) -> Self {
        Self { most, used: Arc::default() }
    }
}

/// The buffer of one upload.
#[derive(Debug)]
pub struct WriteBuffer {
    room: BufferBudget,
    held: usize,
    bytes: Vec<u8>,
}

impl WriteBuffer {
    pub fn new(room: &BufferBudget) -> Self {
        Self { room: room.clone(), held: 0, bytes: Vec::new() }
    }

    /// Appends these bytes. True if the buffer should be written now: it has reached `enough`, or the budget is used up.
    pub fn take(&mut self, bytes: &Bytes, enough: usize) -> bool {
        let wanted = self.bytes.len() + bytes.len();
        let has_room = wanted <= self.held || self.grow(wanted);
        self.bytes.extend_from_slice(bytes);
        !has_room || self.bytes.len() >= enough
    }

    fn grow(&mut self, to: usize) -> bool {
        let more = to - self.held;
        let fits = |used: usize| used.checked_add(more).filter(|used| *used <= self.room.most);
        let has_grown = self.room.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).is_ok();
        if has_grown {
            self.held = to;
        }
        has_grown
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Takes the buffered bytes for writing.
    pub fn give(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Takes back a written buffer for reuse, or frees it if the budget is used up.
    pub fn give_back(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        if self.bytes.is_empty() && buffer.capacity() <= self.held * 2 {
            self.bytes = buffer;
        }
    }
}

impl Drop for WriteBuffer {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.held, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_together_stay_within_the_budget_and_return_it() {
        let room = BufferBudget::of(1000);
        let piece = Bytes::from(vec![0; 300]);
        let mut uploads: Vec<WriteBuffer> = (0..5).map(|_| WriteBuffer::new(&room)).collect();
        let full: Vec<bool> = uploads.iter_mut().map(|upload| upload.take(&piece, 500)).collect();
        assert_eq!(full, [false, false, false, true, true], "there is room for three");
        assert_eq!(room.used.load(Ordering::Acquire), 900);
        for upload in &mut uploads {
            let buffer = upload.give();
            assert_eq!(buffer.len(), 300);
            upload.give_back(buffer);
        }
        assert_eq!(uploads[4].bytes.capacity(), 0, "an upload without room keeps no buffer");
        drop(uploads.drain(..2));
        assert!(!uploads[1].take(&piece, 500));
        assert!(uploads[1].take(&piece, 500), "enough was gathered");
        drop(uploads);
        assert_eq!(room.used.load(Ordering::Acquire), 0);
    }
}
