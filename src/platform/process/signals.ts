import type { Logger } from '../telemetry/logger.ts'

/** The part of `process` that signals come from. */
export type SignalSource = {
  on(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP', run: () => void): unknown
  off(signal: 'SIGTERM' | 'SIGINT' | 'SIGHUP', run: () => void): unknown
}

export type SignalDeps = {
  source: SignalSource
  log: Logger
  /** Called for every SIGTERM and SIGINT; the second one means now. */
  onStop: (signal: 'SIGTERM' | 'SIGINT') => void
  /** Reloads the config on SIGHUP. One reload at a time; signals during a reload lead to one more. */
  onReload?: (() => void | Promise<void>) | undefined
}

/** Listens to SIGTERM, SIGINT and SIGHUP until disposed. */
export function watchSignals({ source, log, onStop, onReload }: SignalDeps): Disposable {
  let reloading = false
  let again = false

  async function reload(): Promise<void> {
    if (reloading) {
      again = true
      return
    }
    reloading = true
    try {
      do {
        again = false
        log.info('reloading')
        // A config that does not load leaves the running one unchanged (fault F18).
        try {
          await onReload?.()
        } catch (error) {
          log.error({ err: error }, 'reload failed; nothing changed')
        }
      } while (again)
    } finally {
      reloading = false
    }
  }

  const onTerm = () => onStop('SIGTERM')
  const onInt = () => onStop('SIGINT')
  const onHup = () => void reload()
  source.on('SIGTERM', onTerm)
  source.on('SIGINT', onInt)
  source.on('SIGHUP', onHup)
  return {
    [Symbol.dispose]() {
      source.off('SIGTERM', onTerm)
      source.off('SIGINT', onInt)
      source.off('SIGHUP', onHup)
    },
  }
}
