import { ServiceError } from '../../../../core/error.ts'
import type { IndexerStatus, QueryResponse } from '../../../../processes/compose/process/control-protocol.ts'
import { type Control, openControl } from '../../../control.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { openRemote } from '../../../operations/open.ts'
import { alignColumns, FORMER_MESSAGE, printFacts, printJson, write } from '../../../output/print.ts'

const COVERAGE =
  'select table_name, from_slot, to_slot, lag_slots, lag_seconds, open_gaps, missing_slots from coverage order by table_name'

export async function indexerStatus(this: CliContext, flags: CommonFlags): Promise<void> {
  const { coverage, ...status } = await readStatus(this, flags)
  if (flags.json === true) return printJson(this, { ...status, coverage }, FORMER_MESSAGE)
  const { ingest, backfill } = status
  printFacts(this, [
    ['database', status.state === 'running' ? 'open' : status.state],
    ['ingest', status.ingests ? 'in this process' : 'in another process'],
    ['head', ingest?.headSlot ?? 'none yet'],
    ['tip', ingest?.tipSlot ?? 'unknown: no node reports a slot'],
    ['behind', behindText(ingest)],
    ...stoppedFacts(status),
    ['written', `${ingest?.blocks ?? 0} blocks, ${ingest?.transactions ?? 0} transactions since the start`],
    ['held', `${ingest?.held ?? 0} blocks wait for an earlier one`],
    ['missing', ingest?.waitsFor === undefined ? 'nothing' : missingText(ingest.waitsFor)],
    ['queries', `${status.runningQueries} running`],
    ['restarts', status.restarts],
    [
      'backfill',
      backfill === undefined ? 'none' : `${backfill.state}, ${backfill.blocks} blocks, next slot ${backfill.nextSlot}`,
    ],
  ])
  if (coverage.length > 0) this.process.stdout.write(`\n${alignColumns(coverage.map((line) => line.split('\t')))}\n`)
}

function behindText(ingest: IndexerStatus['ingest']): string {
  if (ingest?.tipSlot === undefined) return 'unknown'
  if (ingest.headSlot === undefined) return 'no block is written yet'
  return `${Math.max(0, ingest.tipSlot - ingest.headSlot)} slots`
}

const STOPPED_BY = {
  'disk-full': 'no space is left on the disk',
  database: 'the database fails',
  'other-chain': 'the nodes are of another chain than the tables',
} as const

function stoppedFacts({ stopped }: IndexerStatus): (readonly [string, string])[] {
  if (stopped === undefined) return []
  return [
    ['stopped', `since ${new Date(stopped.sinceMs).toISOString()}: ${STOPPED_BY[stopped.reason]} (${stopped.message})`],
  ]
}

async function readStatus(context: CliContext, flags: CommonFlags): Promise<IndexerStatus & { coverage: string[] }> {
  if (context.remote !== undefined) {
    using api = await openRemote(context, flags)
    const { coverage, ...status } = await api.call<IndexerStatus & { coverage: object[] }>('indexerStatus')
    return { ...status, coverage: status.state === 'running' ? tabSeparated(coverage) : [] }
  }
  using client = await openControl(context, flags)
  const status = await statusOf(client)
  return { ...status, coverage: status.state === 'running' ? await coverageLines(client) : [] }
}

/** Rows of the admin API as the database prints them. */
function tabSeparated(rows: readonly object[]): string[] {
  const names = COVERAGE.slice('select '.length, COVERAGE.indexOf(' from coverage')).split(', ')
  const lines = rows.map((row) => Object.values(row).map(cellText))
  return [names, ...lines].map((cells) => cells.join('\t'))
}

function cellText(value: string | number | readonly string[] | null): string {
  if (value === null) return '\\N'
  return typeof value === 'object' ? `[${value.map((each) => `'${each}'`).join(',')}]` : String(value)
}

/** Empty if the database stopped between the two calls. */
async function coverageLines(client: Control): Promise<string[]> {
  const response = await query(client, COVERAGE, 'TabSeparatedWithNames')
  return response.ok ? response.text.trimEnd().split('\n') : []
}

function missingText({ from, to, message }: { from: number; to: number; message: string }): string {
  return `${from === to ? `slot ${from}` : `slots ${from} to ${to}`}: ${message}`
}

export async function indexerQuery(
  this: CliContext,
  flags: CommonFlags & { format?: string },
  sql: string,
): Promise<void> {
  using client = await openControl(this, flags)
  await statusOf(client)
  const format = flags.json === true ? 'JSON' : (flags.format ?? 'TabSeparatedWithNames')
  this.process.stdout.write(await text(client, sql, format))
}

export async function indexerBackfill(
  this: CliContext,
  flags: CommonFlags & { detach?: boolean; stop?: boolean },
  from?: string,
  to?: string,
): Promise<void> {
  using client = await openControl(this, flags)
  const { ingest } = await statusOf(client)
  if (flags.stop === true) {
    await client.call('indexer-backfill-stop')
    return write(this, 'the backfill stops after the current range; written blocks stay')
  }
  if (from === undefined || to === undefined)
    throw new ServiceError('usage', 'the first and the last slot are required', {
      fix: 'For example: sluice indexer backfill 1 1000',
    })
  const range = { from: slotOf(from), to: slotOf(to) }
  if (range.to < range.from)
    throw new ServiceError('invalid-value', `the last slot, ${to}, is before the first, ${from}`, {
      fix: 'Give the lower slot first.',
    })
  const { outcome } = await client.call('indexer-backfill', range)
  if (outcome === 'not-here')
    throw new ServiceError('invalid-value', 'this process does not ingest: indexer.ingest.enabled is false', {
      fix: 'Start the backfill on the machine that ingests.',
    })
  if (outcome === 'other-chain')
    throw new ServiceError('wrong-state', 'the nodes are of another chain than the tables', {
      fix: 'See the reason and what to do with: sluice status',
    })
  if (outcome === 'busy')
    throw new ServiceError('busy', 'another backfill is running', {
      fix: 'See its progress with: sluice indexer status; stop it with: sluice indexer backfill --stop',
    })
  if (outcome === 'beyond-tip')
    throw new ServiceError(
      'invalid-value',
      `slot ${from} is in the future: the chain is at slot ${ingest?.tipSlot ?? 'unknown'}`,
      {
        fix: 'Give slots up to the tip.',
      },
    )
  if (flags.detach === true)
    return write(this, `backfill of ${range.from} to ${range.to} started; see its progress with: sluice indexer status`)
  write(this, 'Ctrl-C leaves the backfill running; stop it with: sluice indexer backfill --stop')
  await follow(this, client, flags)
}

const LOOK_MS = 200

/** Shows the progress, on a terminal as one line that is rewritten. */
async function follow(context: CliContext, client: Control, flags: CommonFlags): Promise<void> {
  const { stderr } = context.process
  for (;;) {
    const { backfill } = await statusOf(client)
    if (backfill === undefined) return
    const { from, to, nextSlot, blocks, startedMs, state, message, failedBy } = backfill
    const share = (nextSlot - from) / (to - from + 1)
    const seconds = Math.max(0.001, (Date.now() - startedMs) / 1000)
    const left = share > 0 ? Math.ceil((seconds / share) * (1 - share)) : undefined
    if (stderr.isTTY && flags.json !== true) {
      const bar = '█'.repeat(Math.round(share * 30)).padEnd(30, '░')
      stderr.write(
        `\r\x1b[K${bar} ${(share * 100).toFixed(1)} %  ${blocks} blocks, ${(blocks / seconds).toFixed(1)}/s${left === undefined ? '' : `, ${left} s left`}${message === undefined ? '' : `  (${message})`}`,
      )
    }
    if (state === 'running') {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
      continue
    }
    if (stderr.isTTY && flags.json !== true) stderr.write('\n')
    if (state === 'failed')
      throw new ServiceError(
        failedBy === 'nodes' ? 'no-upstream' : 'internal',
        `the backfill stopped at slot ${nextSlot}: ${message}`,
        { fix: `When the cause is gone, continue with: sluice indexer backfill ${nextSlot} ${to}` },
      )
    if (flags.json === true) printJson(context, backfill, FORMER_MESSAGE)
    else write(context, `${blocks} blocks written, slots ${from} to ${nextSlot - 1}`)
    return
  }
}

async function statusOf(client: Control): Promise<IndexerStatus> {
  return (await client.call('indexer')) ?? throwNoIndexer()
}

function throwNoIndexer(): never {
  throw new ServiceError('not-found', 'the running process has no indexer', {
    fix: 'Set indexer.enabled = true and restart.',
  })
}

async function query(client: Control, sql: string, format: string): Promise<QueryResponse> {
  return (await client.call('indexer-query', { query: sql, format })) ?? throwNoIndexer()
}

async function text(client: Control, sql: string, format: string): Promise<string> {
  const response = await query(client, sql, format)
  if (response.ok) return response.text
  throw new ServiceError('invalid-value', response.message, {
    fix: 'See tables and columns with: sluice indexer query "show tables", sluice indexer query "describe blocks"',
  })
}

function slotOf(word: string): number {
  const slot = Number(word)
  if (!Number.isSafeInteger(slot) || slot < 0)
    throw new ServiceError('invalid-value', `"${word}" is not a slot`, { fix: 'Give a whole number.' })
  return slot
}
