RSpec.describe("3 failures") { it("one") { }; it("two") { } }
