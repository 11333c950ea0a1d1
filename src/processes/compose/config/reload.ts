import { createHash } from 'node:crypto'
import type { Plans } from '../../../access/plan.ts'
import { ServiceError } from '../../../core/error.ts'
import { resolveSecret } from '../../../platform/config/secret-ref.ts'
import type { Logger } from '../../../platform/telemetry/logger.ts'
import type { NodeChange } from '../../../upstreams/pool/members.ts'
import { assertNewPortsFree, listenersOf } from './check-listeners.ts'
import type { Config, ConfigSection } from './config.ts'
import { assertValidConfig, secretRefsOf } from './faults.ts'
import { mergedNames } from './merged-nodes.ts'
import type { Settings } from './settings.ts'

export type Reloaded = { changed: string[]; needRestart: string[]; message: string[] }
export type Reload = () => Promise<Reloaded>

export type ReloadDeps = {
  readonly log: Logger
  readonly readSettings: () => Promise<Settings>
  readonly env: NodeJS.ProcessEnv
  /** The sections that a restart with this configuration would check. */
  readonly checkedSectionsOf: (config: Config) => readonly ConfigSection[]
  readonly setPlans?: ((plans: Plans) => void) | undefined
  /** Applies the log level in the threads. */
  readonly setLogLevel?: ((level: string) => void) | undefined
  /** The sections that this process uses, besides the addresses that customers use; all where it is missing. */
  readonly usedSections?: readonly string[] | undefined
  /** Applies the upstream nodes and reads their secrets again; undefined where the new list needs a restart. Rejects, and changes nothing, for invalid ones. */
  readonly setNodes: (next: Settings) => Promise<readonly NodeChange[]> | undefined
  /** Applies `admin.oidc`; undefined where this process has no admin API. */
  readonly setSignIn?: ((oidc: Config['admin']['oidc']) => void) | undefined
}

const NODES = /^upstreams\.(nodes|allowPrivate|dedicatedCredentialHeader)(\.|$)/
/** The list has the values of a node by its position; whether its stream is merged is compared by its name. */
const DECODED = /^upstreams\.nodes\.\d+\.decoded$/
const SIGN_IN = /^admin\.oidc(\.|$)/
/** Where the issuer sends browsers back to. A sign-in that was written for another address would send them to the present one. */
const SIGN_IN_ADDRESS = ['admin.publicUrl', 'admin.listen']
/** Read at each use. */
const WEBHOOKS = /^notices\.webhooks\./
/** Addresses that customers use: the cards and documents of every process name them, also those of other services. */
const PUBLIC_ADDRESSES = /^(host|(bundle\.(rpc|ws|grpc|entries)|sender|indexer|execution)\.publicUrl)$/
/** Values that a reload applies. All others need a restart. */
const LIVE = [/^log\.level$/, /^plans\./, NODES, SIGN_IN]

const CHANGES: Readonly<Record<NodeChange['change'], string>> = {
  added: 'is added',
  removed: 'is removed; its calls in flight finish',
  replaced: 'has its new addresses and credential; new connections use them',
  weight: 'has its new weight',
}

/**
 * Reloads the configuration. An invalid file throws, and the present configuration stays in effect. The file is compared with the values in effect, not
 * with the last reload, so that a value that needs a restart is reported each time. One at a time: a signal may come during a reload of the control
 * socket, and the file that was read last is to be in effect.
 */
export function createReload(started: Settings, deps: ReloadDeps): Reload {
  const current = valuesOf(started)
  const merged = mergedOf(started)
  const secrets = hashSecrets(started, deps)
  const isUsed = (key: string) => isUsedIn(deps.usedSections, key)
  let last: Promise<unknown> = Promise.resolve()
  return () => {
    const done = last.then(reload)
    last = done.catch(() => {})
    return done
  }

  async function reload() {
    const { next, nodes } = await readAndApplyNodes(started, deps).catch((error: unknown) => {
      if (!(error instanceof ServiceError)) throw error
      throw new ServiceError(error.code, `${error.message}\nthe present configuration stays in effect`, {
        ...(error.fix === undefined ? {} : { fix: error.fix }),
      })
    })
    const currentSecrets = await secrets
    const given = valuesOf(next)
    const differing = [...new Set([...current.keys(), ...given.keys()])].filter(
      (key) => current.get(key) !== given.get(key) && isUsed(key) && !DECODED.test(key),
    )
    const setSignIn = SIGN_IN_ADDRESS.every((key) => current.get(key) === given.get(key)) ? deps.setSignIn : undefined
    const isLive = (key: string) =>
      LIVE.some((pattern) => pattern.test(key)) &&
      (nodes !== undefined || !NODES.test(key)) &&
      (setSignIn !== undefined || !SIGN_IN.test(key))
    const live = differing.filter(isLive)
    const removed = removedPlans([...current.keys()].filter(isUsed), next)
    deps.log.level = next.config.log.level
    deps.setLogLevel?.(next.config.log.level)
    deps.setPlans?.(next.config.plans)
    setSignIn?.(next.config.admin.oidc)
    for (const key of live) {
      const value = given.get(key)
      if (value === undefined) current.delete(key)
      else current.set(key, value)
    }
    const changed = namesOf(live)
    const replaced = [...(await hashSecrets(next, deps))].flatMap(([key, hash]) =>
      isUsed(key) && !WEBHOOKS.test(key) && (currentSecrets.get(key) ?? hash) !== hash ? key : [],
    )
    const needRestart = namesOf([...new Set([...differing, ...replaced])].filter((key) => !isLive(key)))
    if (isUsed('upstreams.nodes') && mergedOf(next) !== merged) needRestart.push('upstreams.nodes[].decoded')
    deps.log.info({ changed, needRestart, nodes }, 'configuration reloaded')
    const lines = [
      ...changed
        .filter((key) => key !== 'upstreams.nodes' && !isOfPlan(key, removed))
        .map((key) => `${key} is in effect`),
      ...removed.map(
        (plan) =>
          `plan ${plan} is removed; subscriptions that have it have the smallest plan until: sluice sub limit SUB --plan PLAN`,
      ),
      ...(nodes ?? []).map(({ name, change }) => `node ${name} ${CHANGES[change]}`),
      ...needRestart.map((key) => `${key} needs a restart`),
    ]
    return { changed, needRestart, message: lines.length === 0 ? ['nothing changed'] : lines }
  }
}

/**
 * What would make a restart fail refuses the reload, also in values that need a restart: the operator learns it now and not when the process does not come
 * back. Then the nodes: they are the part that can still be refused.
 */
async function readAndApplyNodes(started: Settings, { readSettings, setNodes, env, checkedSectionsOf }: ReloadDeps) {
  const next = await readSettings()
  const sections = checkedSectionsOf(next.config)
  await assertValidConfig(next, { env, sections })
  await assertNewPortsFree(
    listenersOf(started.config, checkedSectionsOf(started.config)),
    listenersOf(next.config, sections),
  )
  return { next, nodes: await setNodes(next) }
}

/** A hash of each secret that can be read, by key: a changed one is found without keeping it. */
async function hashSecrets(
  settings: Settings,
  { env, checkedSectionsOf }: Pick<ReloadDeps, 'env' | 'checkedSectionsOf'>,
): Promise<Map<string, string>> {
  const hashes = new Map<string, string>()
  for (const [key, reference] of secretRefsOf(settings, checkedSectionsOf(settings.config))) {
    const secret = await resolveSecret(reference, { env, folder: settings.loaded.folder }).catch(() => undefined)
    if (secret !== undefined) hashes.set(key, createHash('sha256').update(secret.reveal()).digest('hex'))
  }
  return hashes
}

function isUsedIn(usedSections: readonly string[] | undefined, key: string): boolean {
  return (
    usedSections === undefined || PUBLIC_ADDRESSES.test(key) || usedSections.includes(key.slice(0, key.indexOf('.')))
  )
}

const PLAN = /^plans\.([^.]+)\./

/** Plans in effect that the next configuration does not have. The built-in ones are always there. */
function removedPlans(keys: readonly string[], { config }: Settings): string[] {
  const names = new Set(keys.map((key) => PLAN.exec(key)?.[1]).filter((name) => name !== undefined))
  return [...names].filter((name) => !Object.hasOwn(config.plans, name))
}

function isOfPlan(key: string, plans: readonly string[]): boolean {
  return plans.includes(PLAN.exec(key)?.[1] ?? '')
}

/** The list of nodes is one value: a node more or less moves the values of all that follow. */
function namesOf(keys: readonly string[]): string[] {
  return [...new Set(keys.map((key) => (key.startsWith('upstreams.nodes') ? 'upstreams.nodes' : key)))]
}

/** The nodes whose decoded streams are merged: a thread of its own follows them from the start of the process on. */
function mergedOf({ config }: Settings): string {
  return mergedNames(config.upstreams.nodes).toSorted().join()
}

/** Every value by its path, as comparable text. */
function valuesOf({ loaded }: Settings): Map<string, string> {
  return new Map(loaded.entries().map(({ path, value }) => [path.join('.'), JSON.stringify(value)]))
}
