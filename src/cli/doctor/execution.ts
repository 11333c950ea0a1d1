import { resolve } from 'node:path'
import { messageOf, ServiceError } from '../../core/error.ts'
import { checkRing } from '../../execution/source/check-ring.ts'
import type { SecretSources } from '../../platform/config/secret-ref.ts'
import { systemClock } from '../../platform/process/clock.ts'
import type { Config, ConfigSection } from '../../processes/compose/config/config.ts'
import { bad, type Finding, ok, warn } from '../../processes/compose/config/finding.ts'
import { EXECUTION_OFF, executionSource } from '../../processes/compose/config/served.ts'
import { readEvmChainId } from '../../processes/compose/services/evm-node.ts'

/** The configured source of events: a ring or an EVM node. */
export async function checkExecutionSource(
  config: Config,
  { sections, ...sources }: SecretSources & { readonly folder: string; readonly sections: readonly ConfigSection[] },
): Promise<Finding[]> {
  const { ring, node } = config.execution
  if (!sections.includes('execution')) {
    const isOff = config.execution.enabled && executionSource(config) === undefined
    return isOff ? [ok('execution', `off: ${EXECUTION_OFF}`)] : []
  }
  if (ring !== undefined) return [await checkEventRing(resolve(sources.folder, ring))]
  return node === undefined ? [] : await checkEvmNode(node, sources)
}

async function checkEvmNode(
  node: NonNullable<Config['execution']['node']>,
  sources: SecretSources,
): Promise<Finding[]> {
  try {
    return [ok('evm node', `execution.node responds; its chain has the id ${await readEvmChainId(node, sources)}`)]
  } catch (error) {
    // The check of secrets reports one that cannot be read.
    if (error instanceof ServiceError) return []
    const fix = 'start the node, or correct execution.node.rpc and its credential'
    return [bad('evm node', `execution.node does not respond: ${messageOf(error)}`, fix)]
  }
}

/** It exists, is readable, has a known layout and advances. */
async function checkEventRing(path: string): Promise<Finding> {
  const check = await checkRing(path, systemClock)
  if (check.ok) return ok('ring', `${path} advances (${check.seqno})`)
  switch (check.reason) {
    case 'missing':
      return bad('ring', check.message, `ls -l ${path}   # start the node, or correct execution.ring`)
    case 'unreadable':
      return bad('ring', check.message, `namei -l ${path}   # every folder on the way must let this user through`)
    case 'refused':
      return bad(
        'ring',
        check.message,
        `sluice ring inspect ${path}   # then update the node or Sluice, whichever is older`,
      )
    case 'silent':
      return warn('ring', check.message, `sluice ring watch ${path}   # is the node executing blocks?`)
  }
}
