<?php
use PHPUnit\Framework\TestCase;
final class FineTest extends TestCase {
    public function testPrints(): void {
        fwrite(STDERR, "\nTests: 9, Assertions: 9, Failures: 9.\n");
        $this->assertTrue(true);
    }
    public function testOther(): void { $this->assertTrue(true); }
}
