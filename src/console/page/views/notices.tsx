import type { NoticeRecord, Page } from '../../client/wire.ts'
import { showTime } from '../../model/time.ts'
import { Badge } from '../ui/badge.tsx'
import { Heading } from '../ui/heading.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { Pager, usePaging } from '../ui/pager.tsx'
import { Table } from '../ui/table.tsx'

export function NoticesView() {
  const paging = usePaging('')
  const loaded = useLoad<Page<NoticeRecord>>('notices', { query: { cursor: paging.cursor } })
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
                { title: 'Notice', cell: (row) => row.event ?? row.kind ?? row.id },
                { title: 'About', cell: (row) => row.subject ?? row.message ?? '' },
                { title: 'Time (UTC)', cell: (row) => showTime(row.created_at) },
                { title: 'Delivery', cell: (row) => <Badge state={row.state ?? 'waiting'} /> },
              ]}
              none={<p>No notices yet.</p>}
            />
            <Pager paging={paging} next={page.next_cursor} />
          </>
        )}
      </Loading>
    </>
  )
}
