import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { type Found, paletteOf } from '../../model/palette.ts'
import { findRecords, SEARCH_CHARACTERS_MAX, TYPING_MS } from '../find-records.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'
import { Modal } from '../ui/modal.tsx'

const LIST_ID = 'palette-list'

/** Goes to a view, a customer or a subscription by a part of its name. */
export function Palette() {
  const { client, overlay, session } = useStore()
  const text = useSignal('')
  const records = useSignal<readonly Found[]>([])
  const chosen = useSignal(0)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  useEffect(() => () => clearTimeout(timer.current), [])

  const current = session.value
  if (current.kind !== 'signed-in') return null
  const shown = paletteOf(current.session.role, text.value, records.value)
  const at = Math.min(chosen.value, shown.length - 1)
  const close = () => (overlay.value = undefined)
  const open = (found: Found | undefined): void => {
    if (found === undefined) return
    close()
    goTo(found.route)
  }

  const type = (typed: string): void => {
    text.value = typed
    chosen.value = 0
    clearTimeout(timer.current)
    const asked = typed.trim()
    if (asked === '') {
      records.value = []
      return
    }
    timer.current = setTimeout(async () => {
      const { found } = await findRecords(client, asked)
      // The user may have gone on typing.
      if (text.value.trim() === asked) records.value = found
    }, TYPING_MS)
  }

  const press = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (event.key === 'Enter') open(shown[at])
    else if (step !== 0 && shown.length > 0) chosen.value = (at + step + shown.length) % shown.length
    else return
    event.preventDefault()
    document.getElementById(`palette-${chosen.value}`)?.scrollIntoView({ block: 'nearest' })
  }

  return (
    <Modal class="palette" titleId="palette-title" isLight onClose={close}>
      <h2 id="palette-title" class="sr">
        Go to
      </h2>
      <input
        class="palette-input"
        type="text"
        role="combobox"
        aria-label="View, customer or subscription"
        aria-expanded="true"
        aria-controls={LIST_ID}
        aria-autocomplete="list"
        aria-activedescendant={shown.length === 0 ? undefined : `palette-${at}`}
        placeholder="View, customer or subscription"
        autoComplete="off"
        spellcheck={false}
        maxLength={SEARCH_CHARACTERS_MAX}
        value={text.value}
        onInput={(event) => type(event.currentTarget.value)}
        onKeyDown={press}
      />
      <ul id={LIST_ID} role="listbox" aria-label="Found" class="palette-list">
        {shown.map((found, index) => (
          <li
            key={`${found.kind} ${found.name}`}
            id={`palette-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => open(found)}
            onPointerMove={() => (chosen.value = index)}
          >
            <span class="dim">{found.kind}</span>
            <span>
              <bdi>{found.name}</bdi> <span class="dim">{found.note}</span>
            </span>
          </li>
        ))}
      </ul>
      {shown.length === 0 && (
        <p class="dim" role="status">
          Nothing found
        </p>
      )}
    </Modal>
  )
}
