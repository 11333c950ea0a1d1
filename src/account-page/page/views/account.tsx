import { useEffect } from 'preact/hooks'
import { formatCompact, formatCount } from '../../../ui/format.ts'
import { limitTitle } from '../../../ui/model/limit-title.ts'
import { showDaysLeft, showLastDay, showTime } from '../../../ui/model/time.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Facts } from '../../../ui/parts/facts.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Meter } from '../../../ui/parts/meter.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import { ThemeButton } from '../../../ui/theme-button.tsx'
import { limitUse } from '../../limit-use.ts'
import type { AccountRecord } from '../../wire.ts'
import { useStore } from '../store.ts'
import { Connections } from './connections.tsx'
import { PasteLines } from './paste-lines.tsx'
import { Shreds } from './shreds.tsx'
import { Usage } from './usage.tsx'

const REFRESH_MS = 10_000

/** Everything about one subscription, for its owner. */
export function AccountView({ account }: { account: AccountRecord }) {
  const { refresh, signOut } = useStore()
  useEffect(() => {
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void refresh()
    }, REFRESH_MS)
    return () => clearInterval(timer)
  }, [])
  const { subscription, plan, customer, valid_until: end } = account
  return (
    <div class="account">
      <header class="bar">
        <p class="brand">
          Sluice <span class="dim">your account</span>
        </p>
        <ThemeButton />
        <button type="button" class="quiet-button" onClick={signOut}>
          Sign out
        </button>
      </header>
      <main id="main">
        <Heading
          title={<bdi>{subscription}</bdi>}
          note={
            <>
              plan <bdi>{plan}</bdi>
              {customer !== null && (
                <>
                  {' '}
                  of <bdi>{customer}</bdi>
                </>
              )}
              {end === null ? ', no end' : `, valid until ${showLastDay(end)} (${showDaysLeft(end, Date.now())})`}
            </>
          }
        />
        <Usage />
        <div class="pair">
          <Limits account={account} />
          <Token account={account} />
          <Panel id="services" title="Products">
            <ul class="notes">
              {account.products.map((product) => (
                <li key={product}>{PRODUCT_LABELS[product] ?? product}</li>
              ))}
            </ul>
          </Panel>
        </div>
        {account.products.includes('bundle') && <Connections />}
        {account.products.includes('shreds-raw') && <Shreds />}
        <PasteLines account={account} />
        {account.endpoints['sender'] !== undefined && <Receipts sender={account.endpoints['sender']} />}
      </main>
    </div>
  )
}

const PRODUCT_LABELS: Readonly<Record<string, string>> = {
  bundle: 'RPC, WebSocket and gRPC',
  indexer: 'SQL',
  'shreds-raw': 'Raw shreds over UDP',
  'shreds-decoded': 'Decoded shreds over gRPC',
  'dedicated-node': 'Dedicated node',
}

function Limits({ account }: { account: AccountRecord }) {
  const { budget, month } = account
  return (
    <Panel id="limits" title="Limits">
      <Table
        label="Limits"
        rows={limitUse(account)}
        keyOf={({ name }) => name}
        columns={[
          { title: 'Limit', cell: ({ label }) => limitTitle(label) },
          { title: 'Size', align: 'right', cell: ({ max }) => (max === null ? 'unlimited' : formatCompact(max)) },
          {
            title: 'In use',
            align: 'right',
            cell: ({ max, used }) =>
              used === undefined ? '' : max === null || max === 0 ? formatCount(used) : <Meter used={used} max={max} />,
          },
        ]}
        none={<p>Your plan has no limits.</p>}
      />
      <p class="dim">
        {budget.limit !== null && `Units left now: ${formatCount(budget.remaining)} of ${formatCount(budget.limit)}. `}
        The month begins again at {showTime(month.resets_at)} UTC.
      </p>
    </Panel>
  )
}

function Token({ account: { token, tokens } }: { account: AccountRecord }) {
  const others = (tokens ?? []).filter(({ last4 }) => last4 !== token?.last4)
  const replaced = others.find(({ state }) => state === 'retiring')
  const current = others.find(({ state }) => state === 'active')
  return (
    <Panel id="token" title="Token">
      <Facts
        facts={[
          ['Yours', <code key="own">slc_…{token?.last4}</code>],
          ['State', <Badge key="state" state={token?.valid_until == null ? 'active' : 'retiring'} />],
          ['Works until', token?.valid_until == null ? '' : `${showTime(token.valid_until)} UTC`],
        ]}
      />
      {token?.valid_until != null && (
        <p class="notice">
          Your operator has replaced this token
          {current === undefined ? '' : ` by slc_…${current.last4}`}. Change your programs to the new one before this
          one ends.
        </p>
      )}
      {replaced !== undefined && (
        <p class="notice">
          The token before this one, slc_…{replaced.last4}, still works until {showTime(replaced.valid_until)} UTC.
        </p>
      )}
      {tokens === null && <p class="dim">Whether another token is valid cannot be read right now.</p>}
      <p class="dim">
        To replace it, ask your operator. The old one can work for up to seven days next to the new one.
      </p>
    </Panel>
  )
}

function Receipts({ sender }: { sender: string }) {
  return (
    <Panel id="receipts" title="Sent transactions">
      <p>
        The sender takes transactions without a token, so they belong to no subscription and are not listed here. The
        receipt of one is at <code>{sender}/v1/transactions/SIGNATURE</code>.
      </p>
    </Panel>
  )
}
