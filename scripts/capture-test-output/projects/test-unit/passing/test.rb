require "test/unit"
class A < Test::Unit::TestCase
  def test_a; end
end
