<?php
use PHPUnit\Framework\TestCase;
final class SumsTest extends TestCase {
    public function testAdds(): void { $this->assertSame(2, 1 + 1); }
    public function testRejects5FailedLogins(): void { $this->assertTrue(true); }
    public function testMultiplies(): void { $this->assertSame(5, 2 * 2); }
    public function testCrashes(): void { throw new RuntimeException("Tests: 9, Assertions: 9, Failures: 9."); }
    public function testWrites(): void { $this->markTestSkipped("later"); }
    public function testReads(): void { $this->markTestIncomplete("soon"); }
    public function testRisky(): void { }
}
