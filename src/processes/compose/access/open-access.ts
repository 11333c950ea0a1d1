import { type AccessService, startAccess } from '../../../access/service.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import type { Settings } from '../config/settings.ts'
import type { ProcessContext } from '../process/open-process.ts'
import { writeStopReport } from '../process/stop-report.ts'
import { type UsageWatch, watchUsage } from '../top/usage-watch.ts'
import { openAccessStore } from './open-store.ts'

export type OpenedAccess = AsyncDisposable & {
  readonly store: AccessStore
  readonly usage: UsageWatch
  readonly access: AccessService
}

/** Opens and checks the access store of the configuration, and starts the snapshot that authorizes requests in this process. */
export async function openAccess(
  settings: Settings,
  deps: ProcessContext<never>,
  threads: number = 1,
): Promise<OpenedAccess> {
  const { config, loaded } = settings
  const { log, clock, random, env, registry, lifecycle } = deps
  await using opening = new AsyncDisposableStack()
  // Not the history of usage: `sluice doctor` reads it, and a process that is to serve soon does not.
  const store = opening.use(
    await openAccessStore(settings, { env, check: 'records', log: log.child({ part: 'access' }) }),
  )
  const usage = watchUsage(store, { clock })
  // Runs after access is closed, and before the lock of the state folder is released.
  const started: { access?: AccessService } = {}
  opening.defer(() => {
    if (started.access !== undefined) writeStopReport(deps.state, started.access.usage.state(), log)
  })
  const access = opening.use(
    await startAccess(
      { ...config.access, plans: config.plans, threads },
      {
        store: usage.store,
        log,
        clock,
        random,
        registry,
        lifecycle,
        env,
        folder: loaded.folder,
        spoolFile: deps.state.file('usage-spool'),
      },
    ),
  )
  started.access = access
  const opened = opening.move()
  return { store, usage, access, [Symbol.asyncDispose]: () => opened.disposeAsync() }
}
