import { showTime } from '../../../ui/model/time.ts'
import { Panel } from '../../../ui/panel.tsx'
import type { NoteRecord } from '../../client/wire.ts'
import { ActionButton } from './action-button.tsx'
import type { DialogSpec } from './dialog-spec.ts'

/** Notes of the operator, the newest first. */
export function Notes({ notes, add }: { notes: readonly NoteRecord[]; add: () => DialogSpec }) {
  return (
    <Panel
      id="notes"
      title="Notes"
      aside={
        <ActionButton needs="note" tone="quiet" spec={add}>
          Add note
        </ActionButton>
      }
    >
      {notes.length === 0 ? (
        <p class="dim">No notes. Customers never see them.</p>
      ) : (
        <ul class="notes">
          {notes.toReversed().map((note) => (
            <li key={note.id}>
              <time class="dim">{showTime(note.created_at)}</time> <span>{note.text}</span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}
