import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** What a process can do about memory that nobody uses any more. */
export type MemoryRelease = {
  /** Collects garbage at once. An idle process allocates nothing, so by itself it would not. */
  collect(): void
  /** Gives free memory back to the system, beside the event loop; undefined where the C library cannot. */
  readonly trim: (() => void) | undefined
}

const loadKoffi = () => import('koffi')

export async function loadMemoryRelease(load = loadKoffi): Promise<MemoryRelease> {
  return { collect: loadCollect(), trim: await loadTrim(load) }
}

/** The engine shows its collector to contexts that are made while the flag is set, and to no other code. */
function loadCollect(): () => void {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  setFlagsFromString('--no-expose-gc')
  return () => collect()
}

/** glibc keeps what is freed for later use; `malloc_trim` (3) gives it back. */
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
