// Which rows go where, as RingPushPlan of ring_push.h tells. Values: rows, pins, first, the ring's head and count before.

uint input_row(uint item) {
  return item < dispatch.values[1] ? item : dispatch.values[2] + item - dispatch.values[1];
}

uint ring_slot(uint row, uint capacity, uint pinned) {
  const uint r = dispatch.values[4] + row;
  return r < pinned ? r : pinned + (dispatch.values[3] + r - pinned) % (capacity - pinned);
}
