//! Messages for errors of the driver, which has the important part, such as "Connection refused", in the error's
//! source.

/// An error with its causes, on one line.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::with_causes;

    #[test]
    fn connection_failures_state_the_reason() {
        let refused = std::io::Error::other("Connection refused");
        let error = anyhow::Error::from(refused).context("error connecting to server");
        assert_eq!(with_causes(error.as_ref()), "error connecting to server: Connection refused");
    }
}
