<?php
function add($a, $b) {
  if ($a > 100) {
    return null;
  }
  return $a + $b;
}
