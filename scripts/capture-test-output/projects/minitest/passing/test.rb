require "minitest/autorun"
class A < Minitest::Test
  def test_a; pass; end
end
