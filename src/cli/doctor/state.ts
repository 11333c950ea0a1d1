import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { verifyAudit } from '../../access/audit/verify.ts'
import type { PlanTable } from '../../access/plan.ts'
import { pendingId } from '../../access/provisioning/destinations.ts'
import type { Customer, Destination } from '../../access/store/model.ts'
import type { AccessStore, OnChecked } from '../../access/store/store.ts'
import { errorEntry } from '../../contract/errors.ts'
import { ServiceError } from '../../core/error.ts'
import type { LoadedConfig } from '../../platform/config/file.ts'
import { openStateFolder } from '../../platform/files/state-folder.ts'
import { findDemoCustomer } from '../../processes/compose/access/demo.ts'
import { openAccessStore, sqliteStoreFile } from '../../processes/compose/access/open-store.ts'
import type { Config } from '../../processes/compose/config/config.ts'
import { bad, type Finding, ok, warn } from '../../processes/compose/config/finding.ts'
import { isUnconfigured } from '../../processes/compose/config/served.ts'
import { checkDedicated } from './dedicated.ts'
import { checkDestinations } from './shreds.ts'

export type StateToCheck = {
  readonly stateDir: string
  readonly loaded: LoadedConfig<Config>
  readonly plans: PlanTable
  readonly env: NodeJS.ProcessEnv
  readonly onChecked?: OnChecked | undefined
}

const START_OR_NAME = 'sluice serve   # makes it; if Sluice runs in another folder, add --state DIR'

/** The state folder, the access store, its audit chain and its records. */
export async function checkState(
  of: StateToCheck,
): Promise<{ findings: Finding[]; newestAuditMs: number | undefined }> {
  const { stateDir } = of
  if (!existsSync(stateDir)) {
    return { findings: [warn('state', `${stateDir} does not exist yet`, START_OR_NAME)], newestAuditMs: undefined }
  }
  const findings: Finding[] = []
  try {
    await openStateFolder(stateDir)
    findings.push(ok('state', stateDir))
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return { findings: [bad('state', error.message, error.fix ?? `chmod 700 ${stateDir}`)], newestAuditMs: undefined }
  }
  const { store: position } = of.loaded.value.access
  const file = position.engine === 'sqlite' ? sqliteStoreFile(stateDir, position.file) : undefined
  // The check must not create a store. A store that was deleted still has its audit log, and opening it reports that.
  if (file !== undefined && !existsSync(file) && !existsSync(join(stateDir, 'audit.log'))) {
    findings.push(warn('store', `${file} does not exist yet`, START_OR_NAME))
    return { findings, newestAuditMs: undefined }
  }
  try {
    await using store = await openAccessStore(
      { config: of.loaded.value, loaded: of.loaded, stateDir },
      { env: of.env, check: 'records', create: false },
    )
    findings.push(...(await checkStore(store, of.onChecked)))
    const audit = await checkAudit(store)
    findings.push(audit.finding, ...(await checkRecords(store, of.plans)))
    const settings = { config: of.loaded.value, loaded: of.loaded, stateDir }
    const demo = isUnconfigured(of.loaded) ? undefined : await findDemoCustomer(store)
    if (demo !== undefined) findings.push(demoFinding(demo))
    findings.push(...(await checkDestinations(store, settings, demo?.id)))
    findings.push(...(await checkDedicated(store, settings.config, { env: of.env, folder: of.loaded.folder })))
    return { findings, newestAuditMs: audit.newestMs }
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    findings.push(storeFailure(error))
    return { findings, newestAuditMs: undefined }
  }
}

/** The trial is over: the printed token is valid on the listeners of the installation, and its shreds go to this machine. */
function demoFinding({ name }: Customer): Finding {
  const message = `the customer ${name} of the first start still has a valid token, which was printed then`
  return bad('demo', message, `sluice customer remove ${name} --force --yes`)
}

/** An older store is not damaged: the next start of this release migrates it. */
export function storeFailure({ code, message, fix }: ServiceError): Finding {
  return code === 'store-older' ? warn('store', message, MIGRATE) : bad('store', message, fix ?? errorEntry(code).fix)
}

const MIGRATE = 'start or restart Sluice, then run: sluice doctor'

async function checkStore(store: AccessStore, onChecked?: OnChecked): Promise<Finding[]> {
  const damage = await store.integrity(onChecked)
  if (damage.length === 0) return [ok('store', `${store.name} at revision ${await store.revision()}`)]
  return damage.map((message) =>
    bad(
      'store',
      message,
      'stop Sluice, restore the newest backup (sluice restore FILE --force), then run: sluice doctor',
    ),
  )
}

async function checkAudit(store: AccessStore): Promise<{ finding: Finding; newestMs: number | undefined }> {
  const { lines, findings } = await verifyAudit(store)
  const newestMs = await newestTime(store, lines)
  const [first] = findings
  if (first === undefined) return { finding: ok('audit', `${lines} lines, chain complete`), newestMs }
  const message = `${first.location} line ${first.line} ${first.what}`
  return {
    finding: bad('audit', message, 'keep audit.log as evidence, then compare it with a backup: sluice audit verify'),
    newestMs,
  }
}

async function newestTime(store: AccessStore, seq: number): Promise<number | undefined> {
  for await (const line of store.auditLines(seq)) return Date.parse((JSON.parse(line) as { time: string }).time)
  return undefined
}

function isWaiting(destination: Destination | undefined): boolean {
  return destination?.proof === 'unproven' && !destination.paused
}

/** Records that contradict each other or the configuration. */
async function checkRecords(store: AccessStore, plans: PlanTable): Promise<Finding[]> {
  const findings: Finding[] = []
  const live = (await store.list('subscriptions')).filter(({ state }) => state !== 'cancelled')
  const destinations = new Map((await store.list('destinations')).map((row) => [row.id, row]))
  const owned = new Set((await store.list('nodes')).map((node) => node.subscriptionId))
  for (const { id, name, plan, products } of live) {
    if (!plans.has(plan)) {
      findings.push(
        bad(
          'plan',
          `subscription ${name} has the plan "${plan}", which is not configured`,
          `sluice sub limit ${name} --plan ${plans.list()[0]?.name}`,
        ),
      )
    }
    const destination = destinations.get(id)
    if (products.includes('shreds-raw')) {
      if (destination === undefined) {
        findings.push(
          warn(
            'destination',
            `subscription ${name} has shreds-raw and no destination`,
            `sluice shred set-destination ${name} IP:PORT`,
          ),
        )
      } else if ([destination, destinations.get(pendingId(id))].some(isWaiting)) {
        findings.push(
          warn(
            'destination',
            `a destination of ${name} is unproven`,
            `sluice shred verify ${name}   # or sluice shred set-destination ${name} IP:PORT --vouched, only if you know it is the customer's`,
          ),
        )
      }
    }
    if (products.includes('dedicated-node') && !owned.has(id)) {
      findings.push(
        warn('node', `subscription ${name} has dedicated-node and no node`, `sluice node assign NODE ${name}`),
      )
    }
  }
  return findings.length > 0 ? findings : [ok('records', `${live.length} live subscriptions`)]
}
