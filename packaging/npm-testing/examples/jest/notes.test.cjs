const { connectFerrobase } = require("@ferrobase/testing");

const ferrobase = connectFerrobase();

afterEach(() => ferrobase.reset());

for (const round of ["first", "second"]) {
  test(`people see their own notes only, in the ${round} test as in a fresh project`, async () => {
    const ada = await ferrobase.signedInClient({ email: "ada@example.com" });
    const bob = await ferrobase.signedInClient();
    expect((await ada.from("notes").insert({ title: "mine" })).error).toBeNull();
    expect((await ada.from("notes").select("id, title")).data).toEqual([{ id: 1, title: "mine" }]);
    expect((await bob.from("notes").select()).data).toEqual([]);
  });
}
