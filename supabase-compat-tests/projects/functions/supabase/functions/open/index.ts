Deno.serve((request) => {
  let count = 0;
  const words = new ReadableStream({
    pull(stream) {
      count += 1;
      stream.enqueue(new TextEncoder().encode(`data: ${count}\n\n`));
      if (count === 3) stream.close();
    },
  });
  return new Response(words, { headers: { "content-type": "text/event-stream", "x-path": new URL(request.url).pathname } });
});
