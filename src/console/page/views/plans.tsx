import { useSignal } from '@preact/signals'
import { formatCount } from '../../../ui/format.ts'
import { limitTitle } from '../../../ui/model/limit-title.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Switch } from '../../../ui/parts/switch.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { OverviewRecord, Page, PlanDetails, PlanRecord, ProductRecord } from '../../client/wire.ts'
import { type ComparedLimit, compareLimits, groupCosts } from '../../model/plans.ts'
import { useLoad } from '../ui/load.ts'
import { Empty, Loading } from '../ui/loading.tsx'

export function PlansView() {
  const plans = useLoad<Page<PlanRecord>>('planList')
  return (
    <>
      <Heading title="Products and plans" note="Plans are set in the configuration file, under [plans.NAME]." />
      <Products />
      <Loading of={plans.value}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty>
              <p>No plans. Add them to the configuration file, under [plans.NAME].</p>
            </Empty>
          ) : (
            <>
              <Comparison plans={items} />
              <MethodCosts plans={items} />
            </>
          )
        }
      </Loading>
    </>
  )
}

function Products() {
  const products = useLoad<Page<ProductRecord>>('products')
  return (
    <Panel id="products" title="Products">
      <Loading of={products.value}>
        {({ items }) => (
          <Table
            label="Products"
            rows={items}
            keyOf={(row) => row.key}
            columns={[
              { title: 'Product', cell: (row) => row.title },
              { title: 'Key', cell: (row) => <code>{row.key}</code>, isMinor: true },
              { title: 'State', cell: (row) => <Badge state={(row.status ?? 'offered').replace('-', ' ')} /> },
              { title: 'How customers are recognised', cell: (row) => row.authorization ?? '', isMinor: true },
            ]}
            none={<p>No products.</p>}
          />
        )}
      </Loading>
    </Panel>
  )
}

type PriceField = Exclude<keyof NonNullable<PlanRecord['price']>, 'currency'>

/** Plans as columns: what they cost, who has them, what they limit. */
function Comparison({ plans }: { plans: readonly PlanRecord[] }) {
  const { value: overview } = useLoad<OverviewRecord>('overview').value
  const counts = overview?.subscriptions_by_plan
  const hasPrices = plans.some(({ price }) => price != null)
  const priceRow = (name: string, label: string, of: PriceField): ComparedLimit => ({
    name,
    label,
    values: plans.map(({ price }) => (price == null ? '–' : `${price[of]} ${price.currency}`)),
  })
  const rows: ComparedLimit[] = [
    {
      name: 'subscriptions',
      label: 'Subscriptions',
      values: plans.map(({ name }) => formatCount(counts === undefined ? undefined : (counts[name] ?? 0))),
    },
    ...(hasPrices
      ? [
          priceRow('month', 'Price of a month', 'per_month'),
          priceRow('units', 'Price of a million units', 'per_million_units'),
          priceRow('gigabyte', 'Price of a gigabyte sent', 'per_gigabyte'),
        ]
      : []),
    ...compareLimits(plans),
  ]
  return (
    <Panel
      id="plans"
      title="Plans"
      aside={hasPrices ? undefined : <span class="dim">No prices: add them under [billing.prices.PLAN].</span>}
    >
      <Table
        label="Plans side by side"
        rows={rows}
        keyOf={(row) => row.name}
        columns={[
          { title: 'Limit', cell: (row) => limitTitle(row.label) },
          ...plans.map(({ name }, at) => ({
            title: name,
            align: 'right' as const,
            cell: (row: ComparedLimit) => row.values[at],
          })),
        ]}
        none={<p>No limits.</p>}
      />
    </Panel>
  )
}

function MethodCosts({ plans }: { plans: readonly PlanRecord[] }) {
  const chosen = useSignal(plans[0]?.name ?? '')
  const loaded = useLoad<PlanDetails>('planShow', { params: { plan: chosen.value } })
  return (
    <Panel
      id="costs"
      title="Units of a call"
      aside={
        <Switch
          label="Plan"
          options={plans.map(({ name }) => ({ value: name, label: name }))}
          value={chosen.value}
          onChange={(value) => (chosen.value = value)}
        />
      }
    >
      <Loading of={loaded.value}>
        {({ costs }) => (
          <Table
            label={`Units of a call in the plan ${chosen.value}`}
            rows={groupCosts(costs)}
            keyOf={(row) => String(row.cost)}
            columns={[
              { title: 'Units', cell: (row) => <span class="number">{formatCount(row.cost)}</span> },
              { title: 'Methods', cell: (row) => <span class="wrapped method-list">{row.methods.join(' · ')}</span> },
            ]}
            none={<p>No methods.</p>}
          />
        )}
      </Loading>
    </Panel>
  )
}
