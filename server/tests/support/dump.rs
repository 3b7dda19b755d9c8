//! Restores dumps of databases, like psql.

use bytes::Bytes;
use futures_util::SinkExt as _;

/// Loads a dump like psql: statements, and rows from `COPY … FROM stdin` up to `\.`.
pub async fn restore(client: &tokio_postgres::Client, dump: &str) {
    let mut rest = dump;
    while let Some(start) = rest.find("\nCOPY ") {
        let (statements, copy) = rest.split_at(start + 1);
        client.batch_execute(statements).await.unwrap_or_else(|error| panic!("{error:?}\n{statements}"));
        let (command, rows) = copy.split_once('\n').expect("rows follow");
        let (rows, after) = rows.split_once("\\.\n").expect("the end of the rows");
        let sink = client.copy_in::<_, Bytes>(command).await.unwrap_or_else(|e| panic!("{e:?}\n{command}"));
        let mut sink = std::pin::pin!(sink);
        sink.send(Bytes::copy_from_slice(rows.as_bytes())).await.expect("the rows are sent");
        sink.finish().await.unwrap_or_else(|error| panic!("{error:?}\n{command}"));
        rest = after;
    }
    client.batch_execute(rest).await.unwrap_or_else(|error| panic!("{error:?}\n{rest}"));
    client.batch_execute("reset all").await.expect("our own search path again");
}
