import { createPlanTable } from '../../access/plan.ts'
import { ServiceError } from '../../core/error.ts'
import { ConfigError, type LoadedConfig, loadConfig } from '../../platform/config/file.ts'
import { printIssue } from '../../platform/config/issues.ts'
import { systemClock } from '../../platform/process/clock.ts'
import { checkListeners } from '../../processes/compose/config/check-listeners.ts'
import { type Config, configSchema } from '../../processes/compose/config/config.ts'
import { checkSources } from '../../processes/compose/config/faults.ts'
import { bad, type Finding, ok } from '../../processes/compose/config/finding.ts'
import { servedSections } from '../../processes/compose/config/served.ts'
import type { SettingsSource } from '../find-settings.ts'
import { checkExecutionSource } from './execution.ts'
import { checkClockSync, checkMachine } from './machine.ts'
import { checkProcess } from './process.ts'
import { checkSecrets } from './secrets.ts'
import { checkSender } from './sender.ts'
import { checkServices } from './services.ts'
import { checkDecoded, checkShreds } from './shreds.ts'
import { checkState, type StateToCheck } from './state.ts'
import { checkUpstreams } from './upstreams.ts'

export type CheckInput = Pick<SettingsSource, 'stateDir' | 'configFile' | 'env' | 'running'> &
  Pick<StateToCheck, 'onChecked'>

/** All checks, from the machine up. Checks that depend on a failed one are skipped. */
export async function examine(input: CheckInput): Promise<Finding[]> {
  const findings: Finding[] = [
    ...(await checkMachine(input.stateDir, input.running?.pid)),
    ...(await checkProcess(input.stateDir)),
  ]
  const loaded = await readConfig(input, findings)
  if (loaded === undefined) return findings
  const config = loaded.value
  const { stateDir } = input
  const sections = input.running?.parts ?? servedSections(config)
  findings.push(...(await checkSecrets({ config, loaded, sections }, input)))
  findings.push(...(await checkListeners(config, { folder: loaded.folder, stateDir, sections })))
  const { findings: ofState, newestAuditMs } = await checkState({
    ...input,
    loaded,
    plans: createPlanTable(config.plans),
  })
  findings.push(...ofState)
  findings.push(...(await checkShreds(config, { stateDir, sections })))
  findings.push(...checkDecoded(config, sections))
  findings.push(...(await checkServices(config, { env: input.env, folder: loaded.folder, sections })))
  if (sections.includes('upstreams')) findings.push(...(await checkUpstreams(config, loaded.folder, input.env)))
  findings.push(...(await checkSender(config, { folder: loaded.folder, stateDir, sections })))
  findings.push(...checkSources(config, sections))
  findings.push(...(await checkExecutionSource(config, { env: input.env, folder: loaded.folder, sections })))
  findings.push(await checkClockSync(newestAuditMs, systemClock.nowMs()))
  return findings
}

async function readConfig(input: CheckInput, findings: Finding[]): Promise<LoadedConfig<Config> | undefined> {
  try {
    const loaded = await loadConfig({ schema: configSchema, env: input.env, file: input.configFile })
    const { running } = input
    const ofProcess = running === undefined ? '' : `, of the running process ${running.pid}`
    findings.push(ok('config', `${loaded.file ?? 'no file, all defaults apply'}${ofProcess}`))
    return running === undefined ? loaded : { ...loaded, folder: running.folder }
  } catch (error) {
    if (error instanceof ConfigError)
      findings.push(
        ...error.issues.map((issue) =>
          bad('config', printIssue(issue), 'edit this value, then run: sluice config check'),
        ),
      )
    else if (error instanceof ServiceError)
      findings.push(bad('config', error.message, error.fix ?? 'sluice config check'))
    else throw error
    return undefined
  }
}
