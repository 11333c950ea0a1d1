import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

type ModalProps = {
  class?: string
  titleId: string
  onClose: () => void
  /** A click beside it closes it too. */
  isLight?: boolean
  children: ComponentChildren
}

/** A dialog over the page. The browser holds the focus in it and returns it to where it was; Escape closes it. */
export function Modal({ class: name = '', titleId, onClose, isLight = false, children }: ModalProps) {
  const box = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const opened = box.current
    if (opened?.open === false) opened.showModal()
    return () => opened?.close()
  }, [])
  return (
    <dialog
      ref={box}
      class={`dialog ${name}`.trim()}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => isLight && event.target === box.current && onClose()}
    >
      {children}
    </dialog>
  )
}
