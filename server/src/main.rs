//! The binary. All code is in the library, where tests can reach it.

use std::alloc::{GlobalAlloc, Layout};
use std::process::ExitCode;

use mimalloc::MiMalloc;

/// A request makes some hundred small allocations, for which mimalloc takes a quarter of the instructions of glibc's, and half of
/// those again where it is not asked to align. Huge pages are left off, which would double the resident memory of a server at
/// rest.
#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

struct Allocator;

/// To this much `mi_malloc` aligns whatever the size.
const ALIGNED_ANYWAY: usize = size_of::<usize>();

#[allow(unsafe_code, reason = "an allocator is unsafe by its trait")]
// SAFETY: every block comes from mimalloc and goes back to it; small alignments are what its plain functions guarantee.
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

fn main() -> ExitCode {
    ferrobase::cli::run()
}
