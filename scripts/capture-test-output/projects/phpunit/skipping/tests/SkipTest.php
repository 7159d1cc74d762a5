<?php
use PHPUnit\Framework\TestCase;
final class SkipTest extends TestCase {
    public function testOne(): void { $this->assertTrue(true); }
    public function testWrites(): void { $this->markTestSkipped("later"); }
}
