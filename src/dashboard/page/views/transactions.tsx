import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { BlockTransaction, BlockTransactions } from '../../../contract/execution-history.ts'
import { CopyButton } from '../../../ui/copy-button.tsx'
import { formatCompact, formatCount } from '../../../ui/format.ts'
import { cleanName, shortHex } from '../../../ui/safe-text.ts'
import type { Response } from '../service.ts'
import { useStore } from '../store.ts'
import { Explain } from '../ui/explain.tsx'
import { Contract } from '../ui/hex.tsx'

const PAGE_ROWS = 20

/** The transactions of a block, page by page. `selected`: the index of one to show. `revision`: changes when they may have changed. */
export function Transactions({
  number,
  selected,
  revision,
}: {
  number: number
  selected: number | undefined
  revision: string
}) {
  const { service } = useStore()
  const offset = useSignal(pageOf(selected))
  const page = useSignal<Response<BlockTransactions> | undefined>(undefined)
  useEffect(() => {
    offset.value = pageOf(selected)
  }, [number, selected])
  useEffect(() => {
    let left = false
    const path = `v1/blocks/${number}/transactions?limit=${PAGE_ROWS}&offset=${offset.value}`
    void service.get<BlockTransactions>(path).then((response) => {
      if (!left) page.value = response
    })
    return () => {
      left = true
    }
  }, [number, offset.value, revision])
  return (
    <section aria-label="Transactions">
      <h3>
        Transactions
        <Explain id="transactions" />
      </h3>
      <Page response={page.value} selected={selected} onMove={(to) => (offset.value = to)} />
    </section>
  )
}

type PageProps = {
  response: Response<BlockTransactions> | undefined
  selected: number | undefined
  onMove: (offset: number) => void
}

function Page({ response, selected, onMove }: PageProps) {
  if (response === undefined) return <p class="dim">Loading…</p>
  if (!response.ok) return <p class="dim">{response.status === 404 ? 'Not held.' : cleanName(response.error)}</p>
  const { transactions, txn_count, next_offset } = response.value
  const first = transactions[0]?.index ?? 0
  if (txn_count === 0) return <p class="dim">None.</p>
  return (
    <>
      <table class="plain-table transactions">
        <thead>
          <tr>
            <th scope="col" class="right">
              #
            </th>
            <th scope="col">hash</th>
            <th scope="col">to</th>
            <th scope="col">result</th>
            <th scope="col" class="right">
              gas
            </th>
          </tr>
        </thead>
        <tbody>
          {transactions.map((transaction) => (
            <Row key={transaction.hash} transaction={transaction} isSelected={transaction.index === selected} />
          ))}
        </tbody>
      </table>
      <nav class="steps" aria-label="Pages of transactions">
        <button type="button" disabled={first === 0} onClick={() => onMove(Math.max(0, first - PAGE_ROWS))}>
          ← before
        </button>
        <span>
          {formatCount(first + 1)} to {formatCount(first + transactions.length)} of {formatCount(txn_count)}
        </span>
        <button type="button" disabled={next_offset === null} onClick={() => onMove(next_offset ?? 0)}>
          next →
        </button>
      </nav>
    </>
  )
}

function Row({ transaction, isSelected }: { transaction: BlockTransaction; isSelected: boolean }) {
  const row = useRef<HTMLTableRowElement>(null)
  useEffect(() => {
    if (isSelected) row.current?.scrollIntoView({ block: 'center' })
  }, [isSelected])
  const { index, hash, to, status, gas_used } = transaction
  return (
    <tr ref={row} class={isSelected ? 'selected' : undefined} aria-current={isSelected ? 'true' : undefined}>
      <td class="right number">{formatCount(index)}</td>
      <td>
        <CopyButton class="copy-hash hex" text={() => hash} label={`Copy ${shortHex(hash, 6, 4)}`} done="copied">
          {shortHex(hash, 6, 4)}
        </CopyButton>
      </td>
      <td>{to === null ? <span class="dim">new contract</span> : <Contract address={to} />}</td>
      <td class={status === 'failed' ? 'tone-poor toned' : undefined}>{status === 'failed' ? 'failed' : 'ok'}</td>
      <td class="right number">{formatCompact(gas_used)}</td>
    </tr>
  )
}

function pageOf(index: number | undefined): number {
  return index === undefined ? 0 : Math.floor(index / PAGE_ROWS) * PAGE_ROWS
}
