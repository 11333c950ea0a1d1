import { resolve } from 'node:path'
import { checkRing } from '../../execution/source/check-ring.ts'
import { systemClock } from '../../platform/process/clock.ts'
import type { Config, ConfigSection } from '../../processes/compose/config/config.ts'
import { bad, type Finding, ok, warn } from '../../processes/compose/config/finding.ts'
import { EXECUTION_OFF, executionSource } from '../../processes/compose/config/served.ts'

/** The configured event ring: it exists, is readable, has a known layout and advances. */
export async function checkEventRing(
  config: Config,
  folder: string,
  sections: readonly ConfigSection[],
): Promise<Finding[]> {
  const { execution } = config
  if (!sections.includes('execution')) {
    const isOff = execution.enabled && executionSource(config) === undefined
    return isOff ? [ok('execution', `off: ${EXECUTION_OFF}`)] : []
  }
  if (execution.ring === undefined) return []
  const path = resolve(folder, execution.ring)
  const check = await checkRing(path, systemClock)
  if (check.ok) return [ok('ring', `${path} advances (${check.seqno})`)]
  switch (check.reason) {
    case 'missing':
      return [bad('ring', check.message, `ls -l ${path}   # start the node, or correct execution.ring`)]
    case 'unreadable':
      return [bad('ring', check.message, `namei -l ${path}   # every folder on the way must let this user through`)]
    case 'refused':
      return [
        bad(
          'ring',
          check.message,
          `sluice ring inspect ${path}   # then update the node or Sluice, whichever is older`,
        ),
      ]
    case 'silent':
      return [warn('ring', check.message, `sluice ring watch ${path}   # is the node executing blocks?`)]
  }
}
