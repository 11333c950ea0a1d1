import { type Signal, signal } from '@preact/signals'
import { createContext } from 'preact'
import { useContext, useLayoutEffect, useRef } from 'preact/hooks'
import { EXPLANATIONS, type ExplanationId } from '../../model/explanations.ts'

type Open = { readonly id: ExplanationId; readonly button: HTMLButtonElement } | undefined

const ExplainContext = createContext<Signal<Open>>(signal(undefined))
export const ExplainProvider = ExplainContext.Provider

export function createExplain(): Signal<Open> {
  return signal<Open>(undefined)
}

const POPOVER_ID = 'how-computed'

/** The button beside a number that explains how it is computed. */
export function Explain({ id }: { id: ExplanationId }) {
  const open = useContext(ExplainContext)
  const { title, short } = EXPLANATIONS[id]
  return (
    <button
      type="button"
      class="why"
      data-explains={id}
      title={short}
      aria-label={`How computed: ${title}`}
      aria-expanded={open.value?.id === id}
      aria-controls={POPOVER_ID}
      onClick={(event) => {
        const button = event.currentTarget
        open.value = open.value?.button === button ? undefined : { id, button }
      }}
    >
      ?
    </button>
  )
}

/** One popover for all buttons. */
export function ExplainPopover() {
  const open = useContext(ExplainContext)
  const box = useRef<HTMLDivElement>(null)
  const shown = open.value
  // Before it is painted: at its place, and Escape closes it at once.
  useLayoutEffect(() => {
    if (shown === undefined || box.current === null) return
    position(box.current, shown.button.getBoundingClientRect())
    const close = (event: Event) => {
      if (event instanceof KeyboardEvent && event.key !== 'Escape') return
      if (
        event.target instanceof Node &&
        (box.current?.contains(event.target) || shown.button.contains(event.target))
      ) {
        if (!(event instanceof KeyboardEvent)) return
      }
      event.stopPropagation()
      open.value = undefined
      if (event instanceof KeyboardEvent) shown.button.focus()
    }
    addEventListener('pointerdown', close)
    addEventListener('keydown', close, { capture: true })
    return () => {
      removeEventListener('pointerdown', close)
      removeEventListener('keydown', close, { capture: true })
    }
  }, [shown])
  const text = shown === undefined ? undefined : EXPLANATIONS[shown.id]
  return (
    <div ref={box} id={POPOVER_ID} class="popover" role="status" hidden={text === undefined}>
      {text && (
        <>
          <h3>{text.title}</h3>
          <p class="short">{text.short}</p>
          <p>{text.how}</p>
          <p class="caveat">{text.caveat}</p>
          <p class="source">{text.source}</p>
        </>
      )}
    </div>
  )
}

const MARGIN = 8

/** Below the button where there is room, else above; always inside the window. */
function position(box: HTMLElement, mark: DOMRect): void {
  const { offsetWidth: width, offsetHeight: height } = box
  const left = Math.max(MARGIN, Math.min(mark.left - 12, innerWidth - width - MARGIN))
  const below = mark.bottom + MARGIN
  const top = below + height <= innerHeight ? below : Math.max(MARGIN, mark.top - height - MARGIN)
  box.style.left = `${left}px`
  box.style.top = `${top}px`
}
