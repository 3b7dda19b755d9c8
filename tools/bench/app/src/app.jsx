// Personal notes: sign up or in, write, and see what another page writes.
import { useEffect, useState } from "react";
import { supabase } from "./supabase.js";

export function App() {
  const [session, setSession] = useState(null);
  useEffect(() => {
    const { data } = supabase.auth.onAuthStateChange((_event, now) => setSession(now));
    return () => data.subscription.unsubscribe();
  }, []);
  return session ? <Notes person={session.user} /> : <Door />;
}

function Door() {
  const [problem, setProblem] = useState("");
  async function submit(event) {
    event.preventDefault();
    const { email, password } = Object.fromEntries(new FormData(event.currentTarget));
    const verb = event.nativeEvent.submitter?.value === "in" ? "signInWithPassword" : "signUp";
    const { error } = await supabase.auth[verb]({ email, password });
    setProblem(error?.message ?? "");
  }
  return (
    <form onSubmit={submit}>
      <label>E-mail <input name="email" type="email" /></label>
      <label>Password <input name="password" type="password" /></label>
      <button value="up">Sign up</button>
      <button value="in">Sign in</button>
      <p role="alert">{problem}</p>
    </form>
  );
}

function Notes({ person }) {
  const [notes, setNotes] = useState([]);
  const [title, setTitle] = useState("");
  const [problem, setProblem] = useState("");
  const [isLive, setIsLive] = useState(false);
  async function load() {
    const { data, error } = await supabase.from("notes").select("id, title").order("id");
    setProblem(error?.message ?? "");
    if (data) setNotes(data);
  }
  useEffect(() => {
    load();
    const channel = supabase.channel("notes");
    channel.on("postgres_changes", { event: "*", schema: "public", table: "notes" }, load);
    channel.on("system", {}, (told) => setIsLive(told.extension === "postgres_changes" && told.status === "ok"));
    channel.subscribe();
    return () => void supabase.removeChannel(channel);
  }, []);
  async function add(event) {
    event.preventDefault();
    const { error } = await supabase.from("notes").insert({ title });
    setProblem(error?.message ?? "");
    if (!error) setTitle("");
    await load();
  }
  return (
    <main>
      <p>{person.email} <button onClick={() => supabase.auth.signOut()}>Sign out</button></p>
      <p>{isLive ? "Live" : "Connecting"}</p>
      <form onSubmit={add}>
        <label>Title <input value={title} onChange={(event) => setTitle(event.target.value)} /></label>
        <button>Add</button>
      </form>
      <p role="alert">{problem}</p>
      <ul>{notes.map(({ id, title }) => <li key={id}>{title}</li>)}</ul>
    </main>
  );
}
