import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import { settledWithin } from '../../platform/process/clock.ts'
import type { Lifecycle } from '../../platform/process/lifecycle.ts'
import type { AccessStore } from './store.ts'

/** A store that does not respond is reported as degraded after this time: a broken connection may give no error. */
const STORE_SILENCE_MS = 3000
/** How long closing waits for a call that gets no response. */
const CLOSE_MS = 1000

export type StoreProbeDeps = {
  readonly store: Pick<AccessStore, 'revision'>
  readonly clock: Clock
  readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
}

/** Reads the store, so that an unreachable store is reported before it is needed. Run regularly by the caller. */
export function createStoreProbe({ store, clock, lifecycle }: StoreProbeDeps): AsyncDisposable & { run(): void } {
  let probing: Promise<void> | undefined

  async function probe(): Promise<void> {
    using silence = clock.setTimer(STORE_SILENCE_MS, () =>
      lifecycle.degraded('store', 'does not respond, the last snapshot stays in use'),
    )
    silence.unref?.()
    try {
      await store.revision()
      lifecycle.recovered('store')
    } catch (error) {
      lifecycle.degraded('store', `cannot be read, the last snapshot stays in use: ${messageOf(error)}`)
    }
  }

  return {
    run() {
      probing ??= probe().finally(() => {
        probing = undefined
      })
    },
    [Symbol.asyncDispose]: () => settledWithin(probing, CLOSE_MS, clock),
  }
}
