import { join } from 'node:path'
import { proveDestination } from '../../../access/provisioning/destinations.ts'
import type { Access } from '../../../access/service.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import { ServiceError } from '../../../core/error.ts'
import type { StateFolder } from '../../../platform/files/state-folder.ts'
import { parseAddressPort } from '../../../platform/net/ip-range.ts'
import type { Lifecycle } from '../../../platform/process/lifecycle.ts'
import type { MetricsRegistry } from '../../../platform/telemetry/metrics-registry.ts'
import { ownAddresses } from '../../../platform/udp/socket.ts'
import { type DestinationRules, refusalOf, refusalWords } from '../../../shreds/destinations/rules.ts'
import { parseListen } from '../../../shreds/options.ts'
import { type LeaderSchedule, type Shreds, startShreds } from '../../../shreds/service.ts'
import type { Settings } from '../config/settings.ts'
import { currentActor, type Deps } from '../process/deps.ts'

export type ShredsPartDeps = Deps & {
  readonly state: StateFolder
  readonly store: AccessStore
  readonly access: Access
  readonly registry: MetricsRegistry
  readonly lifecycle: Lifecycle
  readonly leaders: LeaderSchedule
}

/** Delivery reports, in the state folder. */
export const REPORT_FILE = ['shreds', 'reports.db'] as const

/** The relay of shreds as the configuration wants it. */
export async function openShreds(settings: Settings, deps: ShredsPartDeps): Promise<Shreds> {
  const { state, store, env, clock, random } = deps
  await state.folder(REPORT_FILE[0])
  const { destinations } = settings.config.shreds
  return startShreds(
    {
      ...settings.config.shreds,
      destinations: { ...destinations, allowLoopback: isLoopbackAllowed(settings) },
    },
    {
      ...deps,
      reportFile: join(state.path, ...REPORT_FILE),
      challengeKey: await store.sharedKey('shred-challenge'),
      async prove(subscription, code) {
        const on = { store, random, actor: currentActor(env), nowMs: clock.nowMs() }
        await proveDestination(on, { subscription, code, by: 'echo' })
      },
    },
  )
}

/** Where there is no config file Sluice is being tried out, and whoever tries it has nothing but this machine. */
function isLoopbackAllowed({ config, loaded }: Pick<Settings, 'config' | 'loaded'>): boolean {
  return config.shreds.destinations.allowLoopback ?? loaded.file === undefined
}

/** What the command line refuses, which is what the service would refuse too. */
export function destinationRulesOf(settings: Pick<Settings, 'config' | 'loaded'>): DestinationRules {
  const { listen, destinations } = settings.config.shreds
  return {
    allowLoopback: isLoopbackAllowed(settings),
    allowPrivate: destinations.allowPrivate,
    ownAddresses: ownAddresses(),
    sourcePort: parseListen(listen).port,
  }
}

/** The service would send nothing to such a place; better that the operator hears it at once. */
export function checkDestination(text: string, settings: Pick<Settings, 'config' | 'loaded'>): void {
  const address = parseAddressPort(text)
  const refusal = address && refusalOf(address, destinationRulesOf(settings))
  if (refusal === undefined) return
  throw new ServiceError('invalid-value', `shreds are never sent to ${text}: ${refusalWords(refusal)}`)
}
