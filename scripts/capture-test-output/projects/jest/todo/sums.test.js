test.todo("later");
test("now", () => {});
