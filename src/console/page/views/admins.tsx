import { Badge } from '../../../ui/parts/badge.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { AdminRecord, Page } from '../../client/wire.ts'
import { addAdmin, removeAdmin, rotateAdmin } from '../actions/operate.ts'
import { useStore } from '../store.ts'
import { ActionButton } from '../ui/action-button.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { Time } from '../ui/time.tsx'

export function AdminsView() {
  const store = useStore()
  const loaded = useLoad<Page<AdminRecord>>('adminList')
  return (
    <>
      <Heading
        title="Administrators"
        note="Who may use this console and the admin API."
        aside={
          <ActionButton needs="administer" tone="primary" spec={() => addAdmin(store)}>
            Add administrator
          </ActionButton>
        }
      />
      <Loading of={loaded.value}>
        {({ items }) => (
          <Table
            label="Administrators"
            rows={items}
            keyOf={(row) => row.id}
            columns={[
              { title: 'Name', cell: (row) => row.name },
              { title: 'Role', cell: (row) => row.role },
              { title: 'State', cell: (row) => <Badge state={row.state} />, isMinor: true },
              { title: 'Token', cell: (row) => <code>…{row.last4 ?? ''}</code>, isMinor: true },
              { title: 'Added (UTC)', cell: (row) => <Time at={row.created_at} />, isMinor: true },
              {
                title: 'Expires',
                cell: (row) => <Time at={row.expires_at} none="never" />,
                isMinor: true,
              },
              {
                title: '',
                align: 'right',
                cell: (row) =>
                  row.state === 'active' && (
                    <>
                      <ActionButton
                        needs="administer"
                        tone="quiet"
                        label={`Replace token of ${row.name}`}
                        spec={() => rotateAdmin(store, row.name)}
                      >
                        Replace token
                      </ActionButton>
                      <ActionButton
                        needs="administer"
                        tone="quiet"
                        label={`Remove ${row.name}`}
                        spec={() => removeAdmin(store, row.name)}
                      >
                        Remove
                      </ActionButton>
                    </>
                  ),
              },
            ]}
            none={<p>No administrators.</p>}
          />
        )}
      </Loading>
    </>
  )
}
