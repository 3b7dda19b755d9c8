package database

type ShopEmptySelect struct {

}

type ShopEmptyInsert struct {

}

type ShopEmptyUpdate struct {

}

type ShopParcelSelect struct {
  AStateWhoseColumnHasARatherLongName *string  `json:"a_state_whose_column_has_a_rather_long_name"`
  Id                                  int32    `json:"id"`
  SenderId                            int64    `json:"sender_id"`
  Size                                *float64 `json:"size"`
}

type ShopParcelInsert struct {
  AStateWhoseColumnHasARatherLongName *string  `json:"a_state_whose_column_has_a_rather_long_name"`
  Id                                  *int32   `json:"id"`
  SenderId                            int64    `json:"sender_id"`
  Size                                *float64 `json:"size"`
}

type ShopParcelUpdate struct {
  AStateWhoseColumnHasARatherLongName *string  `json:"a_state_whose_column_has_a_rather_long_name"`
  Id                                  *int32   `json:"id"`
  SenderId                            *int64   `json:"sender_id"`
  Size                                *float64 `json:"size"`
}

type ShopPassportSelect struct {
  Issued   string `json:"issued"`
  Number   string `json:"number"`
  PersonId int64  `json:"person_id"`
}

type ShopPassportInsert struct {
  Issued   *string `json:"issued"`
  Number   string  `json:"number"`
  PersonId int64   `json:"person_id"`
}

type ShopPassportUpdate struct {
  Issued   *string `json:"issued"`
  Number   *string `json:"number"`
  PersonId *int64  `json:"person_id"`
}

type ShopPersonSelect struct {
  Born   *string                `json:"born"`
  Email  string                 `json:"email"`
  Home   map[string]interface{} `json:"home"`
  Id     int64                  `json:"id"`
  Notes  interface{}            `json:"notes"`
  State  string                 `json:"state"`
  Tags   []*string              `json:"tags"`
  UserId *string                `json:"user-id"`
}

type ShopPersonInsert struct {
  Born   *string                `json:"born"`
  Email  string                 `json:"email"`
  Home   map[string]interface{} `json:"home"`
  Id     *int64                 `json:"id"`
  Notes  interface{}            `json:"notes"`
  State  *string                `json:"state"`
  Tags   []*string              `json:"tags"`
  UserId *string                `json:"user-id"`
}

type ShopPersonUpdate struct {
  Born   *string                `json:"born"`
  Email  *string                `json:"email"`
  Home   map[string]interface{} `json:"home"`
  Id     *int64                 `json:"id"`
  Notes  interface{}            `json:"notes"`
  State  *string                `json:"state"`
  Tags   []*string              `json:"tags"`
  UserId *string                `json:"user-id"`
}

type ShopAdultSelect struct {
  Born  *string `json:"born"`
  Email *string `json:"email"`
  Id    *int64  `json:"id"`
}

type ShopParcelCountSelect struct {
  Parcels  *int64 `json:"parcels"`
  SenderId *int64 `json:"sender_id"`
}



type ShopPlace struct {
  City     string      `json:"city"`
  PostCode interface{} `json:"post-code"`
  Kind     interface{} `json:"kind"`
}
