import { join } from 'node:path'
import { ServiceError } from '../../../../core/error.ts'
import { secureRandom } from '../../../../platform/process/random.ts'
import type { Settings } from '../../../../processes/compose/config/settings.ts'
import { hasTipKeys, openTipAccounts } from '../../../../processes/compose/services/tip-keys.ts'
import { validateTip } from '../../../../sender/accept/tip-terms.ts'
import type { CliContext, CommonFlags, ListFlags } from '../../../define.ts'
import { findSettings } from '../../../find-settings.ts'
import { openRunningProcess } from '../../../operations/running-process.ts'
import { FORMER_MESSAGE, printFacts, printJson, printList } from '../../../output/print.ts'

export async function listTipAccounts(this: CliContext, flags: ListFlags): Promise<void> {
  const settings = await findSettings(this, flags)
  const source = settings.config.sender.tipAccounts.length > 0 ? 'config' : 'keys'
  const rows = (await accountsOf(settings)).map((account) => ({ account, source }))
  printList(this, flags, {
    rows,
    empty: 'no tip accounts yet; set sender.tipAccounts, or start Sluice once: sluice serve',
    columns: [
      { title: 'ACCOUNT', value: (row) => row.account },
      { title: 'SOURCE', value: (row) => row.source },
    ],
  })
}

export async function checkTip(
  this: CliContext,
  flags: CommonFlags & { account?: string },
  text: string,
): Promise<void> {
  const settings = await findSettings(this, flags)
  const tipAccounts = flags.account === undefined ? await accountsOf(settings) : [flags.account]
  const { minTipLamports } = settings.config.sender
  const verdict = validateTip(text, { tipAccounts, minTipLamports })
  if (!verdict.ok) {
    const { code, message, data } = verdict.refusal
    if (flags.json === true) printJson(this, { ok: false, code, message, ...data })
    else
      printFacts(this, [
        ['refused', code],
        ['because', message],
        ['reason', typeof data['reason'] === 'string' ? data['reason'] : ''],
        ['minimum', `${minTipLamports} lamports`],
        ['next', 'give the signed transaction in base64; list the tip accounts with: sluice tip accounts'],
      ])
    this.process.exitCode = 1
    return
  }
  const { signature, account, lamports } = verdict
  if (flags.json === true) return printJson(this, { ok: true, signature, account, lamports })
  printFacts(this, [
    ['tip', `${lamports} lamports`],
    ['to', account],
    ['signature', signature],
  ])
}

export async function tipStats(this: CliContext, flags: CommonFlags): Promise<void> {
  using client = await openRunningProcess(this, flags)
  const report = await client.call('tip-stats')
  if (report.accepted === undefined) {
    throw new ServiceError('not-found', 'the running process has no sender', {
      fix: 'Set sender.enabled = true and restart.',
    })
  }
  if (flags.json === true) return printJson(this, report, { ...FORMER_MESSAGE, pathStates: 'ways' })
  const rate = report.landed + report.expired + report.ended
  printFacts(this, [
    ['accepted', report.accepted],
    ['landed', `${report.landed} (${percent(report.landed, rate)}), ${report.failed} of them failed on chain`],
    ['expired', report.expired],
    ['abandoned', report.ended],
    ['pending', report.pending],
    ['tips', `${report.tipLamports} lamports`],
    ...(report.tipEventsLost > 0 ? [['not in the ledger', `${report.tipEventsLost} events`] as const] : []),
    ...report.paths.map(({ path, taken, landed, p50Ms, p95Ms }) => {
      const state = report.pathStates.find((one) => one.path === path)
      const times = p50Ms === null ? '' : `, landed after ${p50Ms} ms (p95 ${p95Ms} ms)`
      const message = state?.message ? `, ${state.message}` : ''
      return [
        path,
        `${state?.isOpen === false ? 'closed, ' : ''}took ${taken}, ${percent(landed, taken)} landed${times}${message}`,
      ] as const
    }),
  ])
}

function percent(part: number, whole: number): string {
  return whole === 0 ? '-' : `${((100 * part) / whole).toFixed(1)} %`
}

/** From the config, or from the keys that a start created. This never creates keys. */
async function accountsOf({ config, stateDir }: Settings): Promise<readonly string[]> {
  if (config.sender.tipAccounts.length > 0) return config.sender.tipAccounts
  const keysDir = join(stateDir, 'keys')
  return hasTipKeys(keysDir) ? openTipAccounts(keysDir, secureRandom) : []
}
