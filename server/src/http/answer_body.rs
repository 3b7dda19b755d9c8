//! Bodies of other servers' answers, read within bounds of memory.

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub enum AnswerFault {
    #[error(transparent)]
    Transport(reqwest::Error),
    #[error("the answer is too long")]
    TooLong,
}

/// The body of an answer, if it has at most `most` bytes.
pub async fn read_answer(answer: reqwest::Response, most: usize) -> Result<Vec<u8>, AnswerFault> {
    let body = read_start(answer, most.saturating_add(1))
        .await
        .map_err(|error| AnswerFault::Transport(error.without_url()))?;
    if body.len() > most { Err(AnswerFault::TooLong) } else { Ok(body) }
}

/// The first `most` bytes of an answer's body. The rest is not read.
pub async fn read_start(mut answer: reqwest::Response, most: usize) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while body.len() < most {
        let Some(chunk) = answer.chunk().await? else { break };
        body.extend_from_slice(&chunk[..chunk.len().min(most - body.len())]);
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    async fn answer(body: &'static str) -> reqwest::Response {
        // Another test may have installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("port");
        let address = listener.local_addr().expect("address");
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.expect("caller");
            // A request left unread would reset the connection.
            let read = stream.read(&mut [0; 4096]).await.expect("request");
            assert!(read > 0);
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            stream.write_all((head + body).as_bytes()).await.expect("answer");
        });
        reqwest::get(format!("http://{address}/")).await.expect("answer")
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        assert_eq!(read_answer(answer("four").await, 4).await.expect("body"), b"four");
        assert!(matches!(read_answer(answer("fives").await, 4).await, Err(AnswerFault::TooLong)));
        assert_eq!(read_start(answer("fives").await, 4).await.expect("start"), b"five");
        assert_eq!(read_start(answer("").await, 4).await.expect("start"), b"");
    }
}
