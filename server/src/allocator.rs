//! The allocator of the binary. A crate of its own, because `just up` does not optimize the binary's, and a request makes hundreds of calls.

use std::alloc::{GlobalAlloc, Layout};

use mimalloc::MiMalloc;

/// A request makes some hundred small allocations. mimalloc needs a quarter of glibc's instructions for them, and half of
/// that without alignment requests. Huge pages are off, because they would double the resident memory of an idle server.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

struct Allocator;

/// `mi_malloc` always guarantees this alignment.
const ALIGNED_ANYWAY: usize = size_of::<usize>();

#[allow(unsafe_code, reason = "an allocator is unsafe by its trait")]
// SAFETY: every block is allocated and freed by mimalloc, whose plain functions guarantee small alignments.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match layout.align() <= ALIGNED_ANYWAY {
            // SAFETY: the caller's contract is this function's own.
            true => unsafe { libmimalloc_sys::mi_malloc(layout.size()) }.cast(),
            // SAFETY: as above.
            false => unsafe { MiMalloc.alloc(layout) },
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract is this function's own.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract is this function's own.
        unsafe { MiMalloc.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        match layout.align() <= ALIGNED_ANYWAY {
            // SAFETY: the caller's contract is this function's own.
            true => unsafe { libmimalloc_sys::mi_realloc(block.cast(), new_size) }.cast(),
            // SAFETY: as above.
            false => unsafe { MiMalloc.realloc(block, layout, new_size) },
        }
    }
}
