//! How much uploads may gather in memory before it is written, all of them together.
//!
//! An upload that gets no more room writes what it has at once, in smaller pieces: many slow clients cost speed, not memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Bytes of all uploads of a store.
const MOST: usize = 32 << 20;

/// The room of a store. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Room {
    most: usize,
    used: Arc<AtomicUsize>,
}

impl Default for Room {
    fn default() -> Self {
        Self::of(MOST)
    }
}

impl Room {
    pub fn of(most: usize) -> Self {
        Self { most, used: Arc::default() }
    }
}

/// What one upload has gathered.
#[derive(Debug)]
pub struct Gathering {
    room: Room,
    held: usize,
    bytes: Vec<u8>,
}

impl Gathering {
    pub fn new(room: &Room) -> Self {
        Self { room: room.clone(), held: 0, bytes: Vec::new() }
    }

    /// Takes these bytes along. True if all that was gathered should be written now: it is as much as `enough`, or there
    /// is no room for more.
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

    /// What was gathered, to be written.
    pub fn give(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Takes a buffer back whose bytes were written; without room for it, it goes.
    pub fn give_back(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        if self.bytes.is_empty() && buffer.capacity() <= self.held * 2 {
            self.bytes = buffer;
        }
    }
}

impl Drop for Gathering {
    fn drop(&mut self) {
        self.room.used.fetch_sub(self.held, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_together_hold_no_more_than_there_is_room_for_and_give_it_back() {
        let room = Room::of(1000);
        let piece = Bytes::from(vec![0; 300]);
        let mut uploads: Vec<Gathering> = (0..5).map(|_| Gathering::new(&room)).collect();
        let full: Vec<bool> = uploads.iter_mut().map(|upload| upload.take(&piece, 500)).collect();
        assert_eq!(full, [false, false, false, true, true], "there is room for three");
        assert_eq!(room.used.load(Ordering::Acquire), 900);
        for upload in &mut uploads {
            let buffer = upload.give();
            assert_eq!(buffer.len(), 300);
            upload.give_back(buffer);
        }
        assert_eq!(uploads[4].bytes.capacity(), 0, "what has no room keeps no buffer");
        drop(uploads.drain(..2));
        assert!(!uploads[1].take(&piece, 500));
        assert!(uploads[1].take(&piece, 500), "enough was gathered");
        drop(uploads);
        assert_eq!(room.used.load(Ordering::Acquire), 0);
    }
}
