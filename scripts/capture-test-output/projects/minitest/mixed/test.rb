require "minitest/autorun"
class SumsTest < Minitest::Test
  def test_adds; assert_equal 2, 1 + 1; end
  def test_rejects_5_failed_logins; puts "9 runs, 9 assertions, 9 failures, 0 errors, 0 skips"; end
  def test_multiplies; assert_equal 5, 2 * 2; end
  def test_crashes; raise "no database"; end
  def test_writes; skip "later"; end
end
