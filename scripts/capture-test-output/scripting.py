"""RSpec, Minitest, test-unit, PHPUnit, Bats and prove."""

from cases import Case, Runner, counts, text

RSPEC = Runner("rspec", "rspec --version", debian=("ruby-rspec", "ruby-simplecov"))
MINITEST = Runner("minitest", "ruby -rminitest -e 'puts Minitest::VERSION'", debian=("ruby-minitest",))
TEST_UNIT = Runner("test-unit", "ruby -rtest-unit -e 'puts Test::Unit::VERSION'", debian=("ruby-test-unit",))
PHPUNIT = Runner("phpunit", "phpunit --version", debian=("phpunit", "php-pcov"))
BATS = Runner("bats", "bats --version", debian=("bats",))
PROVE = Runner("prove", "prove --version", debian=("perl",))

SPEC = text("""
    RSpec.describe "sums" do
      it("adds") { expect(1 + 1).to eq 2 }
      it("rejects 5 failed logins") { puts "12 examples, 7 failures" }
      it("multiplies") { expect(2 * 2).to eq 5 }
      it("crashes") { raise "no database" }
      it "writes"
      xit("reads") { }
    end
""")
SPEC_PASSING = 'RSpec.describe("3 failures") { it("one") { }; it("two") { } }\n'
SPEC_FAILED = ["sums multiplies", "sums crashes"]
RSPEC_CASES = (
    Case(RSPEC, "mixed", {"spec/sums_spec.rb": SPEC}, "rspec", counts("RSpec", 2, 2, skipped=2, failures=SPEC_FAILED)),
    Case(
        RSPEC,
        "documentation",
        {"spec/sums_spec.rb": SPEC},
        "rspec --format documentation --force-color",
        counts("RSpec", 2, 2, skipped=2, failures=SPEC_FAILED),
    ),
    Case(
        RSPEC,
        "json",
        {"spec/sums_spec.rb": SPEC},
        "rspec --format json",
        counts("RSpec JSON", 2, 2, skipped=2, failures=SPEC_FAILED),
    ),
    Case(RSPEC, "passing", {"spec/a_spec.rb": SPEC_PASSING}, "rspec", counts("RSpec", 2)),
    Case(RSPEC, "none", {"spec/a_spec.rb": ""}, "rspec", counts("RSpec", 0)),
    Case(RSPEC, "outside-error", {"spec/a_spec.rb": "raise 'no database'\n"}, "rspec", counts("RSpec", 0, 0, 1)),
)

MINI = text("""
    require "minitest/autorun"
    class SumsTest < Minitest::Test
      def test_adds; assert_equal 2, 1 + 1; end
      def test_rejects_5_failed_logins; puts "9 runs, 9 assertions, 9 failures, 0 errors, 0 skips"; end
      def test_multiplies; assert_equal 5, 2 * 2; end
      def test_crashes; raise "no database"; end
      def test_writes; skip "later"; end
    end
""")
MINI_PASSING = 'require "minitest/autorun"\nclass A < Minitest::Test\n  def test_a; pass; end\nend\n'
UNIT = (
    MINI.replace("minitest/autorun", "test/unit")
    .replace("Minitest::Test", "Test::Unit::TestCase")
    .replace('skip "later"', 'omit "later"')
)
MINI_CASES = (
    Case(
        MINITEST,
        "mixed",
        {"test.rb": MINI},
        "ruby test.rb --seed 1",
        counts("Minitest", 2, 1, 1, 1, failures=["SumsTest#test_multiplies", "SumsTest#test_crashes"]),
    ),
    Case(MINITEST, "verbose", {"test.rb": MINI}, "ruby test.rb --verbose --seed 1", counts("Minitest", 2, 1, 1, 1)),
    Case(MINITEST, "passing", {"test.rb": MINI_PASSING}, "ruby test.rb", counts("Minitest", 1)),
    Case(MINITEST, "none", {"test.rb": 'require "minitest/autorun"\n'}, "ruby test.rb", counts("Minitest", 0)),
    Case(
        MINITEST,
        "several-files",
        {"a.rb": MINI_PASSING, "b.rb": MINI},
        "ruby a.rb; ruby b.rb --seed 1",
        {"runners": [counts("Minitest", 1), counts("Minitest", 2, 1, 1, 1)]},
    ),
    Case(TEST_UNIT, "mixed", {"test.rb": UNIT}, "ruby test.rb", counts("test-unit", 2, 1, 1, 1)),
    Case(
        TEST_UNIT,
        "passing",
        {"test.rb": 'require "test/unit"\nclass A < Test::Unit::TestCase\n  def test_a; end\nend\n'},
        "ruby test.rb",
        counts("test-unit", 1),
    ),
)

PHP = text("""
    <?php
    use PHPUnit\\Framework\\TestCase;
    final class SumsTest extends TestCase {
        public function testAdds(): void { $this->assertSame(2, 1 + 1); }
        public function testRejects5FailedLogins(): void { $this->assertTrue(true); }
        public function testMultiplies(): void { $this->assertSame(5, 2 * 2); }
        public function testCrashes(): void { throw new RuntimeException("Tests: 9, Assertions: 9, Failures: 9."); }
        public function testWrites(): void { $this->markTestSkipped("later"); }
        public function testReads(): void { $this->markTestIncomplete("soon"); }
        public function testRisky(): void { }
    }
""")
PHP_PASSING = text("""
    <?php
    use PHPUnit\\Framework\\TestCase;
    final class FineTest extends TestCase {
        public function testPrints(): void {
            fwrite(STDERR, "\\nTests: 9, Assertions: 9, Failures: 9.\\n");
            $this->assertTrue(true);
        }
        public function testOther(): void { $this->assertTrue(true); }
    }
""")
PHP_SKIPPING = text("""
    <?php
    use PHPUnit\\Framework\\TestCase;
    final class SkipTest extends TestCase {
        public function testOne(): void { $this->assertTrue(true); }
        public function testWrites(): void { $this->markTestSkipped("later"); }
    }
""")
PHPUNIT_CASES = (
    Case(
        PHPUNIT,
        "mixed",
        {"tests/SumsTest.php": PHP},
        "phpunit tests",
        counts("PHPUnit", 3, 1, 1, 2, failures=["SumsTest::testCrashes", "SumsTest::testMultiplies"]),
    ),
    Case(PHPUNIT, "testdox", {"tests/SumsTest.php": PHP}, "phpunit --testdox tests", counts("PHPUnit", 3, 1, 1, 2)),
    Case(
        PHPUNIT, "colour", {"tests/SumsTest.php": PHP}, "phpunit --colors=always tests", counts("PHPUnit", 3, 1, 1, 2)
    ),
    Case(PHPUNIT, "passing", {"tests/FineTest.php": PHP_PASSING}, "phpunit tests", counts("PHPUnit", 2)),
    Case(PHPUNIT, "skipping", {"tests/SkipTest.php": PHP_SKIPPING}, "phpunit tests", counts("PHPUnit", 1, skipped=1)),
    Case(PHPUNIT, "none", {"tests/x.php": ""}, "phpunit tests", counts("PHPUnit", 0)),
    Case(
        PHPUNIT,
        "junit",
        {"tests/SumsTest.php": PHP},
        "phpunit --log-junit junit.xml tests",
        counts("JUnit XML", 2, 1, 2, 2),
        ("junit.xml",),
    ),
)

BATS_MIXED = text("""
    @test "adds" { [ 2 -eq 2 ]; }
    @test "rejects 5 failed logins" { echo "not ok 9 imaginary"; true; }
    @test "multiplies" { echo "ok 12 imaginary"; echo "1..99"; false; }
    @test "writes" { skip "later"; }
""")
BATS_CASES = (
    Case(BATS, "tap", {"a.bats": BATS_MIXED}, "bats a.bats", counts("TAP", 2, 1, skipped=1, failures=["multiplies"])),
    Case(
        BATS,
        "pretty",
        {"a.bats": BATS_MIXED},
        "bats --pretty a.bats",
        counts("Bats", 2, 1, skipped=1, failures=["multiplies"]),
        (),
        {"TERM": "xterm"},
    ),
    Case(BATS, "tap13", {"a.bats": BATS_MIXED}, "bats --formatter tap13 a.bats", counts("TAP", 2, 1, skipped=1)),
    Case(BATS, "passing", {"a.bats": '@test "a" { true; }\n'}, "bats a.bats", counts("TAP", 1)),
    Case(
        BATS,
        "junit",
        {"a.bats": BATS_MIXED},
        "bats --report-formatter junit a.bats",
        counts("JUnit XML", 2, 1, skipped=1),
        ("report.xml",),
    ),
)

PERL = text("""
    use Test::More tests => 4;
    is(1 + 1, 2, "adds");
    pass("rejects 5 failed logins");
    is(2 * 2, 5, "multiplies");
    SKIP: { skip "later", 1; pass("writes"); }
""")
PERL_PASSING = 'use Test::More tests => 2;\nprint "# Files=9, Tests=99\\n";\npass("a");\npass("b");\n'
PERL_DIES = 'use Test::More tests => 3;\npass("a");\ndie "no database";\n'
PERL_TODO = 'use Test::More tests => 2;\npass("a");\nTODO: { local $TODO = "known bug"; fail("b"); }\n'
PROVE_CASES = (
    Case(PROVE, "mixed", {"t/a.t": PERL, "t/b.t": PERL_PASSING}, "prove", counts("prove", 5, 1, failures=["t/a.t 3"])),
    Case(
        PROVE,
        "verbose",
        {"t/a.t": PERL, "t/b.t": PERL_PASSING},
        "prove -v",
        counts("prove", 4, 1, skipped=1, failures=["t/a.t 3"]),
    ),
    Case(PROVE, "passing", {"t/b.t": PERL_PASSING}, "prove", counts("prove", 2)),
    Case(PROVE, "parallel", {"t/a.t": PERL, "t/b.t": PERL_PASSING}, "prove -j2", counts("prove", 5, 1)),
    Case(PROVE, "dies", {"t/a.t": PERL_DIES}, "prove", counts("prove", 1, 0, 2)),
    Case(PROVE, "todo", {"t/a.t": PERL_TODO}, "prove", counts("prove", 2)),
    Case(PROVE, "direct", {"t/a.t": PERL}, "perl t/a.t", counts("TAP", 2, 1, skipped=1, failures=["multiplies"])),
    Case(PROVE, "none", {"x": ""}, "prove", {"unrecognised": True}),
)

CASES = (*RSPEC_CASES, *MINI_CASES, *PHPUNIT_CASES, *BATS_CASES, *PROVE_CASES)
