import type { ListedNotice } from '../../../contract/notice-wire.ts'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { Page } from '../../client/wire.ts'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { Pager, usePaging } from '../ui/pager.tsx'
import { Time } from '../ui/time.tsx'

export function NoticesView() {
  const paging = usePaging('')
  const loaded = useLoad<Page<ListedNotice> & { readonly enabled?: boolean }>('notices', {
    query: { cursor: paging.cursor },
  })
  return (
    <>
      <Heading title="Notices" note="What was sent to your webhook, newest first." />
      <Loading of={loaded.value}>
        {(page) => (
          <>
            <Table
              label="Notices"
              rows={page.items}
              keyOf={(row) => row.id}
              columns={[
                { title: 'Notice', cell: (row) => row.message },
                { title: 'Kind', cell: (row) => <code>{row.type}</code>, isMinor: true },
                { title: 'Time (UTC)', cell: (row) => <Time at={row.timestamp} /> },
                {
                  title: 'Delivery',
                  cell: (row) =>
                    row.deliveries.map(({ receiver, state, last_failure }) => (
                      <span key={receiver} title={last_failure ?? undefined}>
                        {receiver} <Badge state={state} />{' '}
                      </span>
                    )),
                },
              ]}
              none={
                page.enabled === false ? (
                  <p>No receiver is configured. Add one under [notices] in the configuration and restart.</p>
                ) : (
                  <p>No notices yet.</p>
                )
              }
            />
            <Pager paging={paging} next={page.next_cursor} />
          </>
        )}
      </Loading>
    </>
  )
}
