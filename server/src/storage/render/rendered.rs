//! What a transformation returns.

/// An encoded image.
#[derive(Clone, Debug)]
pub struct Rendered {
    pub bytes: bytes::Bytes,
    pub mime: &'static str,
}

/// Why a transformation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("The source image is invalid or unsupported for rendering")]
    Source,
    #[error("The source image resolution is too large to process")]
    Resolution,
    #[error("The source image file is too large to process")]
    FileSize,
    /// Only in builds without AVIF.
    #[error("Image transformation request was rejected")]
    Rejected,
    /// Only in builds without the feature `images`.
    #[error("This build does not transform images")]
    Absent,
    #[error("Internal error")]
    Internal,
}
