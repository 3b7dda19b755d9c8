"""supabase-py's channels (serializer 1.0.0): broadcast, presence, changes, private channels. Run by tools/test-tools.sh."""

import asyncio
import os
import uuid

import supabase

ANON = os.environ.get(
    "SUPABASE_ANON_KEY",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJzdXBhYmFzZS1kZW1vIiwicm9sZSI6ImFub24iLCJleHAiOjE5ODM4MTI5OTZ9"
    ".CRXP1A7WOeoJeXxjNni43kdQwgnWNReilDMblYTn_I0",
)
PASSWORD = "correct-Horse-7"


async def client():
    return await supabase.acreate_client(os.environ["SUPABASE_URL"], ANON)


async def signed_up():
    one = await client()
    email = f"py-{uuid.uuid4().hex[:8]}@compat.test"
    answer = await one.auth.sign_up({"email": email, "password": PASSWORD})
    await one.realtime.set_auth(answer.session.access_token)
    return one, answer.user.id


async def joined(channel):
    states = []
    await channel.subscribe(lambda state, error: states.append((state.value, error)))
    assert states and states[-1][0] == "SUBSCRIBED", states
    return channel


async def refused(channel):
    states = []
    await channel.subscribe(lambda state, error: states.append((state.value, str(error))))
    assert states and states[-1][0] == "CHANNEL_ERROR", states
    return states[-1][1]


async def heard(queue):
    return await asyncio.wait_for(queue.get(), 20)


async def broadcast():
    room = f"room-{uuid.uuid4()}"
    one, two = await client(), await client()
    queue, echo = asyncio.Queue(), asyncio.Queue()
    await joined(two.channel(room).on_broadcast("wörd", queue.put_nowait))
    sender = one.channel(room, {"config": {"broadcast": {"self": True, "ack": True}}})
    await joined(sender.on_broadcast("wörd", echo.put_nowait))
    await sender.send_broadcast("wörd", {"a": "ü"})
    for got in (await heard(queue), await heard(echo)):
        assert (got["event"], got["payload"]) == ("wörd", {"a": "ü"}), got
    await sender.http_send("wörd", {"n": 1})
    assert (await heard(queue))["payload"] == {"n": 1}
    await one.remove_all_channels()
    await two.remove_all_channels()


async def presence():
    room = f"room-{uuid.uuid4()}"
    watcher, tab = await client(), await client()
    joins, leaves = asyncio.Queue(), asyncio.Queue()
    watching = watcher.channel(room)
    watching.on_presence_join(lambda key, old, new: joins.put_nowait((key, new)))
    watching.on_presence_leave(lambda key, old, left: leaves.put_nowait(key))
    await joined(watching)
    tracked = await joined(tab.channel(room, {"config": {"presence": {"key": "ann"}}}))
    await tracked.track({"page": "a"})
    key, new = await heard(joins)
    assert key == "ann" and new[0]["page"] == "a", (key, new)
    assert "ann" in watching.presence_state()
    await tab.remove_all_channels()
    assert await heard(leaves) == "ann"
    assert watching.presence_state() == {}
    await watcher.remove_all_channels()


async def changes():
    alice, alice_id = await signed_up()
    bob, _ = await signed_up()
    room = f"room-{uuid.uuid4()}"
    queue, bobs = asyncio.Queue(), asyncio.Queue()
    filtered = alice.channel("notes").on_postgres_changes(
        "*", queue.put_nowait, table="live_notes", schema="public", filter=f"room=eq.{room}"
    )
    await joined(filtered)
    await joined(bob.channel("notes").on_postgres_changes("*", bobs.put_nowait, table="live_notes", schema="public"))
    notes = alice.table("live_notes")
    await notes.insert({"room": "elsewhere", "body": "filtered"}).execute()
    row = (await notes.insert({"room": room, "body": "hello"}).execute()).data[0]
    told = (await heard(queue))["data"]
    assert (told["type"], told["record"]["id"], told["record"]["body"]) == ("INSERT", row["id"], "hello"), told
    await notes.update({"body": "bye"}).eq("id", row["id"]).execute()
    told = (await heard(queue))["data"]
    assert (told["type"], told["record"]["body"], told["old_record"]) == ("UPDATE", "bye", {"id": row["id"]}), told
    await bob.table("live_notes").insert({"room": room, "body": "of bob"}).execute()
    assert (await heard(bobs))["data"]["record"]["body"] == "of bob"
    assert queue.empty() and bobs.empty()

    private = {"config": {"private": True, "broadcast": {"self": True}}}
    diary = asyncio.Queue()
    own = await joined(alice.channel(f"{alice_id}:diary", private).on_broadcast("mine", diary.put_nowait))
    await own.send_broadcast("mine", {"n": 1})
    assert (await heard(diary))["payload"] == {"n": 1}
    told = await refused(bob.channel(f"{alice_id}:diary", private))
    assert "You do not have permissions to read from this Channel topic" in told, told
    await alice.remove_all_channels()
    await bob.remove_all_channels()


async def main():
    await broadcast()
    await presence()
    await changes()
    print("supabase-py", supabase.__version__, "channels ok")


asyncio.run(main())
