/** Attempts before a thread sleeps between them: longer than any critical section of a thread that is running. */
const SPINS = 200
const SLEEP_MS = 0.5
/** After this many sleeps the holder is taken to be dead: a living one would have run meanwhile. */
const SLEEPS_MAX = 2000

/**
 * Locks a cell of a shared array for the owner, a number above zero. For critical sections of less than a microsecond that neither allocate nor call
 * foreign code, because another thread waits on the spot. A thread that died within its section loses the lock to the next one after a second.
 */
export function lockCell(cells: Int32Array, index: number, owner: number): void {
  if (Atomics.compareExchange(cells, index, 0, owner) !== 0) waitForCell(cells, index, owner)
}

export function unlockCell(cells: Int32Array, index: number): void {
  Atomics.store(cells, index, 0)
}

function waitForCell(cells: Int32Array, index: number, owner: number): void {
  for (let spin = 0; spin < SPINS; spin++) {
    if (Atomics.compareExchange(cells, index, 0, owner) === 0) return
  }
  // The holder does not run at the moment, for example because it shares a core with this thread.
  let sleeps = 0
  let last = 0
  for (;;) {
    const holder = Atomics.compareExchange(cells, index, 0, owner)
    if (holder === 0) return
    // Another one: the last has released it.
    if (holder !== last) sleeps = 0
    last = holder
    if (++sleeps > SLEEPS_MAX && Atomics.compareExchange(cells, index, holder, owner) === holder) return
    Atomics.wait(cells, index, holder, SLEEP_MS)
  }
}
