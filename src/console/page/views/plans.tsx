import { Panel } from '../../../ui/panel.tsx'
import type { Page, PlanRecord, ProductRecord } from '../../client/wire.ts'
import { limitRows, showLimit } from '../../model/limits.ts'
import { Badge } from '../ui/badge.tsx'
import { Heading } from '../ui/heading.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { Table } from '../ui/table.tsx'

export function PlansView() {
  const products = useLoad<Page<ProductRecord>>('products')
  const plans = useLoad<Page<PlanRecord>>('planList')
  return (
    <>
      <Heading title="Products and plans" note="Plans are set in the configuration file, under [plans.NAME]." />
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
                { title: 'Offered', cell: (row) => <Badge state={row.is_offered ? 'offered' : 'off'} /> },
                { title: 'How customers are recognised', cell: (row) => row.authorization ?? '', isMinor: true },
              ]}
              none={<p>No products.</p>}
            />
          )}
        </Loading>
      </Panel>
      <Panel id="plans" title="Plans">
        <Loading of={plans.value}>
          {({ items }) => {
            const limitsOf = (plan: PlanRecord) => limitRows(plan.limits, {})
            const [first] = items
            return (
              <Table
                label="Plans"
                rows={items}
                keyOf={(row) => row.name}
                columns={[
                  { title: 'Plan', cell: (row) => row.name },
                  ...(first === undefined ? [] : limitsOf(first)).map((limit, at) => ({
                    title: limit.label,
                    align: 'right' as const,
                    isMinor: at > 1,
                    cell: (row: PlanRecord) => {
                      const found = limitsOf(row).find(({ name }) => name === limit.name)
                      return found === undefined ? '' : showLimit(found.value)
                    },
                  })),
                ]}
                none={<p>No plans. Add them to the configuration file, under [plans.NAME].</p>}
              />
            )
          }}
        </Loading>
      </Panel>
    </>
  )
}
