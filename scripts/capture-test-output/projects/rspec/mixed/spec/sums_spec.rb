RSpec.describe "sums" do
  it("adds") { expect(1 + 1).to eq 2 }
  it("rejects 5 failed logins") { puts "12 examples, 7 failures" }
  it("multiplies") { expect(2 * 2).to eq 5 }
  it("crashes") { raise "no database" }
  it "writes"
  xit("reads") { }
end
