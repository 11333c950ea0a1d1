import { useSignal } from '@preact/signals'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { AuditRecord, AuditVerification, Page } from '../../client/wire.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { Pager, usePaging } from '../ui/pager.tsx'
import { TextFilter } from '../ui/text-filter.tsx'
import { Time } from '../ui/time.tsx'

export function AuditView() {
  const { client, route } = useStore()
  const { subject = '' } = route.value.query
  const paging = usePaging(subject)
  const loaded = useLoad<Page<AuditRecord>>('audit', { query: { subject, cursor: paging.cursor } })
  const verified = useSignal<{ readonly isOk: boolean; readonly text: string } | undefined>(undefined)
  const isBusy = useSignal(false)
  const verify = async (): Promise<void> => {
    isBusy.value = true
    const result = await client.call<AuditVerification>('auditVerify')
    isBusy.value = false
    if (!result.ok) verified.value = { isOk: false, text: result.error.message }
    else if (result.value.ok)
      verified.value = { isOk: true, text: `The chain is complete: ${result.value.lines} lines.` }
    else
      verified.value = {
        isOk: false,
        text: `The chain is broken: ${(result.value.findings ?? []).map(({ what, line = '' }) => `line ${line} ${what}`).join('; ')}`,
      }
  }
  return (
    <>
      <Heading
        title="Audit log"
        note="Every change, who made it, in a chain of hashes. Newest first."
        aside={
          <button type="button" class="button" disabled={isBusy.value} onClick={() => void verify()}>
            {isBusy.value ? 'Verifying…' : 'Verify the chain'}
          </button>
        }
      />
      {verified.value !== undefined && (
        <p class={verified.value.isOk ? 'notice notice-good' : 'notice notice-error'} role="status">
          {verified.value.text}
        </p>
      )}
      <div class="filter-row">
        <TextFilter
          value={subject}
          label="Customer, subscription or node"
          onChange={(text) => goTo({ view: 'audit', query: { subject: text } })}
        />
      </div>
      <Loading of={loaded.value} missing={<p>Nothing is called “{subject}”. Write the whole name, or an id.</p>}>
        {(page) => (
          <>
            <Table
              label="Audit log"
              rows={page.items}
              keyOf={(row) => String(row.seq)}
              columns={[
                { title: 'Line', cell: (row) => <span class="number">{row.seq}</span>, isMinor: true },
                { title: 'Time (UTC)', cell: (row) => <Time at={row.time} /> },
                {
                  title: 'Who',
                  cell: ({ actor }) => actor.admin?.name ?? `${actor.sudo_user ?? actor.user} (command line)`,
                  isMinor: true,
                },
                { title: 'Change', cell: (row) => row.action },
                {
                  title: 'Of',
                  cell: (row) => <span class="wrapped">{subjectsOf(row)}</span>,
                },
              ]}
              none={<p>Nothing was changed yet{subject === '' ? '' : ` for “${subject}”`}.</p>}
            />
            <Pager paging={paging} next={page.next_cursor} />
          </>
        )}
      </Loading>
    </>
  )
}

/** Names of what was changed. What has no name of its own, such as a note, is left out beside what has one. */
function subjectsOf({ subjects, subject_names = {}, after }: AuditRecord): string {
  const names = subjects.flatMap((id) => subject_names[id] ?? [])
  if (names.length > 0) return names.join(', ')
  return typeof after?.name === 'string' ? after.name : subjects.join(', ')
}
