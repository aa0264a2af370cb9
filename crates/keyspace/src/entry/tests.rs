use super::*;

fn heap() -> Heap {
    Heap::new(Arc::default())
}

/// Every kind in every form.
fn types() -> impl Iterator<Item = Type> + Clone {
    let forms = [Form::Whole, Form::Decimal, Form::Part];
    let of = move |kind| forms.into_iter().map(move |form| Type { kind, form });
    Kind::ALL.into_iter().flat_map(of)
}

fn free(heap: &mut Heap, entry: Entry) {
    // SAFETY: each test frees what it made, last.
    drop(unsafe { entry.free(heap) });
}

#[test]
fn entries_hold_what_they_were_given() {
    let (mut heap, mut mark) = (heap(), Mark::default());
    let mut all_types = types().cycle();
    for key_len in [0, 1, 16, 255, 256, 70_000] {
        for value_len in [
            0,
            1,
            16,
            100,
            INLINE_VALUE_MAX,
            INLINE_VALUE_MAX + 1,
            100_000,
        ] {
            let expiries = [None, Some(1), Some(i64::MAX)];
            let logs = [None, Some(LogAddress::PENDING)];
            for (expiry, log) in expiries
                .into_iter()
                .flat_map(|expiry| logs.map(|log| (expiry, log)))
            {
                let of = all_types.next().expect("it has no end");
                let (key, value) = (vec![b'k'; key_len], vec![b'v'; value_len]);
                let entry = Entry::new(
                    &mut heap,
                    &key,
                    NewValue::copy_of(&value),
                    Extras { expiry, log },
                    Stamp::new(0x1ff_ffff, mark).of(of),
                );
                assert_eq!((entry.value_type(), entry.kind()), (of, of.kind));
                assert_eq!(entry.log_address(), log);
                assert!(entry.has_mark(mark) && !entry.has_mark(mark.flipped()));
                assert_eq!(entry.key(), key);
                assert!(entry.has_key(&key) && !entry.has_key(b"other"));
                assert_eq!(entry.value().bytes(), value);
                assert_eq!(entry.expiry(), expiry);
                assert_eq!(entry.clock(), 0xff_ffff);
                let entry = entry
                    .set_expiry(&mut heap, Some(7))
                    .set_expiry(&mut heap, Some(8));
                assert_eq!(
                    (entry.expiry(), entry.value().bytes()),
                    (Some(8), &value[..])
                );
                let entry = entry.set_expiry(&mut heap, None);
                assert_eq!(
                    (entry.expiry(), entry.key(), entry.value().bytes()),
                    (None, &key[..], &value[..])
                );
                assert!(entry.has_mark(mark) && entry.clock() == 0xff_ffff);
                assert_eq!((entry.log_address(), entry.value_type()), (log, of));
                let address = LogAddress(NonZeroU64::MAX);
                let entry = entry.set_log_address(&mut heap, address);
                let entry = entry.set_expiry(&mut heap, Some(9));
                assert_eq!(
                    (entry.log_address(), entry.expiry(), entry.key()),
                    (Some(address), Some(9), &key[..])
                );
                assert_eq!(entry.value().bytes(), value);
                entry.set_mark(mark.flipped());
                entry.set_clock(7);
                assert_eq!((entry.value_type(), entry.clock()), (of, 7));
                mark = mark.flipped();
                free(&mut heap, entry);
            }
        }
    }
}

#[test]
fn overwriting_and_resizing_match_a_vector() {
    let mut heap = heap();
    let mut random = fastrand::Rng::with_seed(7);
    let sizes = [
        0usize, 1, 7, 8, 9, 20, 64, 200, 16_000, 16_383, 16_384, 40_000,
    ];
    let key = b"some key";
    let (first, second) = (
        Stamp::new(1, Mark::default()),
        Stamp::new(2, Mark::default()),
    );
    let mut model = b"start".to_vec();
    let all_types: Vec<Type> = types().collect();
    let mut of = Type::STRING;
    let value = NewValue::copy_of(&model);
    let mut entry = Entry::new(&mut heap, key, value, Extras::default(), first);
    let (mut held, mut address) = (Vec::new(), None);
    for round in 0..20_000 {
        if round >= 10_000 && random.u8(..) < 30 {
            address = NonZeroU64::new(random.u64(1..)).map(LogAddress);
            entry = entry.set_log_address(&mut heap, address.expect("not zero"));
        }
        assert_eq!(entry.log_address(), address);
        let len = sizes[random.usize(..sizes.len())];
        let class_before = entry.class();
        if random.bool() {
            model = vec![random.u8(..); len];
            of = all_types[random.usize(..all_types.len())];
            let expiry = random.bool().then_some(round);
            if random.bool() && entry.overwrite_in_place(&model, true, second.of(of)) {
                assert_eq!(entry.class(), class_before);
            } else {
                let value = NewValue::copy_of(&model);
                let (class, is_inline) = (entry.class(), model.len() <= INLINE_VALUE_MAX);
                let was_inline = matches!(entry.value(), Stored::Inline(_));
                let (new, _) = entry.overwrite(&mut heap, key, value, expiry, second.of(of));
                assert!(new == entry || new.class() != class || !is_inline || !was_inline);
                entry = new;
                assert_eq!(entry.expiry(), expiry);
            }
        } else {
            of.form = Form::Part;
            entry = entry.resize_value(&mut heap, len).0;
            entry.set_form(of.form);
            model.resize(len, 0);
            let byte = random.u8(..);
            if let Some(at) = len.checked_sub(1) {
                entry.value_mut()[at] = byte;
                model[at] = byte;
            }
        }
        // A reply that still holds the value must not see later changes.
        if let Stored::Large(large) = entry.value()
            && random.u8(..) < 30
        {
            held.push((large.share(), model.clone()));
        }
        assert_eq!(entry.value().bytes(), model);
        assert_eq!((entry.key(), entry.value_type()), (&key[..], of));
        if held.len() > 8 {
            for (large, then) in held.drain(..) {
                assert_eq!(&large[..], then);
            }
        }
    }
    free(&mut heap, entry);
}

#[test]
fn the_numbers_of_kinds_stay() {
    assert_eq!(Kind::ALL.map(|kind| kind as u8), [0, 1, 2, 3, 4, 5]);
    for bits in 0..=u8::MAX {
        let known = Kind::ALL.into_iter().find(|kind| *kind as u8 == bits);
        assert_eq!(Kind::from_bits(bits), known);
    }
    // They have four bits in a header.
    assert!(Kind::ALL.iter().all(|kind| (*kind as u64) & !KIND == 0));
}

#[test]
fn a_type_takes_no_memory() {
    let mut heap = heap();
    for (key_len, value_len) in [(1, 0), (16, 16), (300, 100), (20, 16_383), (20, 50_000)] {
        let (key, value) = (vec![b'k'; key_len], vec![b'v'; value_len]);
        let wide = if key_len > 255 { 8 } else { 0 };
        let slot = if value_len > INLINE_VALUE_MAX {
            8
        } else {
            value_len
        };
        for of in types() {
            let value = NewValue::copy_of(&value);
            let stamp = Stamp::new(1, Mark::default()).of(of);
            let entry = Entry::new(&mut heap, &key, value, Extras::default(), stamp);
            assert_eq!(entry.class(), class_size(8 + wide + key_len + slot));
            free(&mut heap, entry);
        }
    }
}
