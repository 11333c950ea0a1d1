import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Ways to return unused memory to the system. */
export type MemoryRelease = {
  /** Runs a garbage collection. An idle process allocates nothing, so it would not collect by itself. */
  collect(): void
  /** Returns free heap memory to the system, off the event loop; undefined where the C library cannot. */
  readonly trim: (() => void) | undefined
}

const loadKoffi = () => import('koffi')

export async function loadMemoryRelease(load = loadKoffi): Promise<MemoryRelease> {
  return { collect: loadCollect(), trim: await loadTrim(load) }
}

/** Threads that load at the same time disturb each other; each attempt succeeds unless another thread is in its own. */
const ATTEMPTS_MAX = 1000

/**
 * A collection of this thread's heap. V8 exposes `gc` only in contexts that are created while the flag is set. The flag is that of the process, so
 * another thread that loads too may unset it in between.
 */
export function loadCollect(): () => void {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('globalThis.gc') as (() => void) | undefined
    setFlagsFromString('--no-expose-gc')
    if (collect !== undefined) return () => collect()
  }
  assert.fail('the runtime does not expose gc')
}

/** glibc keeps freed memory for reuse; malloc_trim(3) returns it. */
async function loadTrim(load: typeof loadKoffi): Promise<(() => void) | undefined> {
  try {
    const { default: koffi } = await load()
    const mallocTrim = koffi.load('libc.so.6').func('int malloc_trim(size_t)')
    let isRunning = false
    return () => {
      if (isRunning) return
      isRunning = true
      mallocTrim.async(0, () => {
        isRunning = false
      })
    }
  } catch {
    return undefined
  }
}
