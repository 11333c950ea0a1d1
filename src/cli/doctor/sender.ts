import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { ServiceError } from '../../core/error.ts'
import { checkSecretFile } from '../../platform/files/state-folder.ts'
import type { Config, ConfigSection } from '../../processes/compose/config/config.ts'
import { bad, type Finding, ok, warn } from '../../processes/compose/config/finding.ts'
import type { TipStats } from '../../processes/compose/process/control-protocol.ts'
import { hasTipKeys } from '../../processes/compose/services/tip-keys.ts'
import { askProcess } from '../control.ts'
import { scheduleFinding } from './schedule.ts'

/** Tip accounts exist, the identity is readable, and the running sender has an open path and its priority. */
export async function checkSender(
  config: Config,
  { folder, stateDir, sections }: { folder: string; stateDir: string; sections: readonly ConfigSection[] },
): Promise<Finding[]> {
  if (!sections.includes('sender')) return []
  return [
    checkTipAccounts(config, stateDir),
    ...(await checkIdentity(config, folder)),
    ...(await checkRunning(stateDir)),
  ]
}

function checkTipAccounts({ sender, access }: Config, stateDir: string): Finding {
  if (sender.tipAccounts.length > 0)
    return ok(
      'tip accounts',
      `${sender.tipAccounts.length} in the config; their keys are not in the backup of Sluice unless in keys/`,
    )
  const keysDir = join(stateDir, 'keys')
  if (access.store.engine === 'postgres') {
    return warn(
      'tip accounts',
      'this machine has tip accounts of its own; other machines on the same store have others',
      'sluice tip accounts   # on one machine, then the same sender.tipAccounts in the config of each',
    )
  }
  if (hasTipKeys(keysDir))
    return ok('tip accounts', `five keys in ${keysDir}: they own the tips, keep them with sluice backup FILE`)
  return ok('tip accounts', `none yet; the first start creates five keys in ${keysDir}, which must be kept`)
}

async function checkIdentity({ sender }: Config, folder: string): Promise<Finding[]> {
  const { enabled, identity } = sender.quic
  if (!enabled || identity === undefined) return []
  const path = resolve(folder, identity)
  if (!existsSync(path)) {
    const fix = `solana-keygen new -o ${path}   # or correct sender.quic.identity`
    return [bad('sender identity', `the file ${path} of sender.quic.identity does not exist`, fix)]
  }
  try {
    await checkSecretFile(path)
    return [ok('sender identity', path)]
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    return [bad('sender identity', error.message, error.fix ?? `chmod 600 ${path}`)]
  }
}

/** Asks the running process, which knows whether leaders are reachable, and its priority. */
async function checkRunning(stateDir: string): Promise<Finding[]> {
  const { pathStates = [], schedule } = (await askProcess(stateDir, (control) => control.call('tip-stats'))) ?? {}
  return [...checkPaths(pathStates), ...(schedule === undefined ? [] : [scheduleFinding('sender priority', schedule)])]
}

function checkPaths(paths: TipStats['pathStates']): Finding[] {
  if (paths.length > 0 && paths.every(({ isOpen }) => !isOpen)) {
    return [
      bad(
        'sender paths',
        'no path to a leader is open: transactions are refused with -32503',
        'sluice upstream list   # then repair a node',
      ),
    ]
  }
  return paths.map(({ path, isOpen, message }) => {
    const text = message === '' ? path : `${path}: ${message}`
    // If leaders publish no QUIC address, transactions go through the nodes.
    if (isOpen || path === 'quic') return ok('sender paths', isOpen ? text : `${text} (closed)`)
    return warn('sender paths', `${text} is closed`, 'sluice tip stats   # then look at the node or relay of that name')
  })
}
